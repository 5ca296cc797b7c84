"""Wrong types for every parameter of every public function: one line that names the parameter or value."""

import inspect
import linecache
import traceback

import matplotlib.pyplot as plt
import pandas as pd
import pytest

import uetrust
from tests.helpers.public_calls import of_measures, of_texts
from uetrust.cli.public import public_names

WRONG = dict(
    none=None,
    number=5,
    text="words",
    texts=["one", "two"],
    empty=[],
    table=pd.DataFrame(dict(text=["one", "two"])),
    dictionary=dict(key="word"),
)
SHOWS = dict(
    number=["5"], text=["words"], texts=["one"], empty=["0"], table=["text", "one"], dictionary=["key"]
)
CALLED = sorted(set(public_names()) - {"PRR", "Undefined"})  # These two hold what is given


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    return of_measures() | of_texts(tmp_path_factory.mktemp("calls"))


@pytest.fixture(autouse=True)
def figures():
    yield
    plt.close("all")


def error_of(function, given):
    try:
        function(**given)
    except Exception as error:
        return error
    return None


def is_raised_by_us(error):
    "Whether a line of the package that begins with raise is where the error comes from"
    place = traceback.extract_tb(error.__traceback__)[-1]
    line = linecache.getline(place.filename, place.lineno).strip()
    return "/uetrust/" in place.filename and line.startswith("raise")


def fault(error, parameter, kind):
    "What is wrong with an error; '' when a stranger could act on it"
    said = str(error)
    if isinstance(error, (AttributeError, KeyError, IndexError, TypeError)):
        return f"a raw {type(error).__name__}: {said}"
    if "\n" in said:
        return f"several lines: {said}"
    shown = is_raised_by_us(error) and any(part in said for part in SHOWS.get(kind, []))
    return "" if parameter in said or shown else f"neither the parameter nor its value is named: {said}"


def test_every_public_function_is_called(calls):
    assert sorted(calls) == CALLED, "add a call to tests/helpers/public_calls.py"


@pytest.mark.parametrize("name", CALLED)
def test_a_wrong_type_is_answered_in_one_line(calls, name, tmp_path, monkeypatch):
    function, given, faults = getattr(uetrust, name), calls[name], {}
    usual = str(error_of(function, given))  # 'None', or what it says where there is no server
    monkeypatch.chdir(tmp_path)
    for parameter, about in inspect.signature(function).parameters.items():
        if about.kind in (about.VAR_KEYWORD, about.VAR_POSITIONAL):
            continue
        for kind, value in WRONG.items():
            error = error_of(function, given | {parameter: value})
            if error and str(error) != usual and (found := fault(error, parameter, kind)):
                faults[f"{parameter}={kind}"] = found
    assert faults == {}


@pytest.mark.parametrize(
    "name", [name for name in CALLED if name not in ("judge_scores", "run_notebook", "run_pipeline")]
)
def test_a_usual_call_works(calls, name):
    assert error_of(getattr(uetrust, name), calls[name]) is None
