"""Public names: each is where it is said to be, is loaded once asked for, and says what it takes."""

import subprocess
import sys
from importlib import import_module

import pytest

import uetrust
from uetrust.cli.public import PUBLIC, load_public, public_names


def test_no_name_has_two_places_and_each_is_there():
    assert sum(len(names.split()) for names in PUBLIC.values()) == len(public_names())
    for name, module in public_names().items():
        assert hasattr(import_module(f"uetrust.{module}"), name), name


def test_a_name_is_the_object_of_its_module_with_the_comments_of_its_source():
    found = load_public("prr")
    assert found is import_module("uetrust.evaluation.prr").prr is uetrust.prr
    assert "Parameters\n----------\nquality" in found.__doc__ and load_public("prr").__doc__ == found.__doc__


def test_a_name_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(AttributeError, match="no public name 'prrr'; it has Decoding, Endpoint, "):
        load_public("prrr")


def test_asking_for_one_name_loads_no_model():
    code = "import sys; from uetrust import prr; print('torch' in sys.modules, 'matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
