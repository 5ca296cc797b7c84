"""Public names: each is where it is said to be, is loaded once asked for, and says what it takes."""

import pickle
import subprocess
import sys
from importlib import import_module

import pytest

import uetrust
from tests.helpers.paths import ROOT
from uetrust.cli.public import PUBLIC, load_public, public_names


def test_no_name_has_two_places_and_each_is_there():
    assert sum(len(names.split()) for names in PUBLIC.values()) == len(public_names())
    for name, module in public_names().items():
        assert hasattr(import_module(f"uetrust.{module}"), name), name


def test_a_name_is_the_object_of_its_module_with_the_comments_of_its_source():
    found = load_public("prr")
    assert found.__wrapped__ is import_module("uetrust.evaluation.prr").prr is uetrust.prr.__wrapped__
    assert load_public("PRR") is import_module("uetrust.evaluation.prr").PRR
    assert "Parameters\n----------\nquality" in found.__doc__ and load_public("prr").__doc__ == found.__doc__


def test_a_public_function_may_go_to_another_process():
    assert pickle.loads(pickle.dumps(uetrust.prr)) is uetrust.prr


WITHOUT_TORCH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers", "tokenizers", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from uetrust import *
import uetrust

print(sum(name in globals() for name in uetrust.__all__), round(prr([1, 0, 1], [0.1, 0.9, 0.2]).value, 9))
for name in ("load_model", "score_tokens", "generate_texts"):
    try:
        globals()[name](1, 2, 3)
    except ModuleNotFoundError as error:
        print(error)
try:
    compute_metrics(TEXTS, dict(bart="data/models/tiny-bart"), ["bart_score"], progress=False)
except ModuleNotFoundError as error:
    print(error)
"""


def test_without_torch_every_name_is_there_and_says_on_use_what_to_install():
    texts = "import pandas as pd; TEXTS = pd.DataFrame(dict(id=['a'], hypothesis=['a b'], source=['a b c']))"
    code = f"{texts}\n{WITHOUT_TORCH}"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    count, *said = done.stdout.splitlines()
    assert count == f"{len(uetrust.__all__)} 1.0"
    assert said == [
        f"{name}: this needs the package torch: pip install 'uetrust[models]'"
        for name in ("load_model", "score_tokens", "generate_texts", "compute_metrics")
    ]


def test_a_name_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(AttributeError, match="no public name 'prrr'; it has Decoding, Endpoint, "):
        load_public("prrr")


def test_asking_for_one_name_loads_no_model():
    code = "import sys; from uetrust import prr; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
