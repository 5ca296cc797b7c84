"""Notebooks and parameters that cannot run: `uetrust run`."""

import json

from tests.faults.harness import fault

INI = "[common]\n\n[profile.smoke]\n"
KERNEL = dict(name="python3", display_name="Python 3", language="python")
SLOW = 60  # Seconds for what starts a kernel


def cell(source, **about):
    return dict(cell_type="code", metadata=about, source=source, outputs=[], execution_count=None)


def notebook(folder, *sources, parameters="number = 3\nname = 'x'", **changes):
    "A project with a notebook, and the command that runs it."
    (folder / "nbs" / "experiments").mkdir(parents=True)
    (folder / "settings.ini").write_text(INI)
    cells = [cell(parameters, tags=["parameters"]), *map(cell, sources)]
    found = dict(cells=cells, metadata=dict(kernelspec=KERNEL), nbformat=4, nbformat_minor=4) | changes
    (folder / "page.ipynb").write_text(json.dumps({k: v for k, v in found.items() if v is not None}))
    return ["run", "page.ipynb", "out/done.ipynb"]


@fault("right", limit=SLOW)
def a_notebook_that_runs(folder):
    return [*notebook(folder, "print(number, name)"), "number=4"]


VALUES = {
    "an open quote": "name='x",
    "an open bracket": "name=[1, 2",
    "a tab": "name=\tx: y",
    "an escape": "name=a\x1b[31mb",
    "a bell": "name=\x07",
    "two colons": "name=a: b: c",
    "an alias": "name=*a",
    "a tag of Python": "name=!!python/object/apply:os.system ['touch hacked']",
    "a tag of its own": "name=!mine x",
    "a merge": "name=<<: x: y",
    "a date": "name=2024-01-31",
    "a time": "name=2024-01-31 10:00:00",
    "bytes": "name=!!binary aGVsbG8=",
    "a set": "name=!!set {a, b}",
    "a percent sign": "name=%a",
    "an at sign": "name=@a",
    "a backtick": "name=`ls`",
    "a key of a list": "name={[1]: 2}",
}


def not_hacked(folder, outcome):
    assert not list(folder.rglob("hacked"))


@fault("either", "name", cases=VALUES, limit=SLOW, check=not_hacked)
def a_value_with(folder, pair):
    return [*notebook(folder, "assert name is not None"), pair]


@fault("error", "name=value", cases={"no sign": "name", "empty": ""}, limit=SLOW)
def a_parameter_of(folder, pair):
    return [*notebook(folder), pair]


@fault("error", "'nubmer'", "Did you mean 'number'", limit=SLOW)
def a_parameter_that_it_does_not_have(folder):
    return [*notebook(folder), "nubmer=3"]


@fault("error", "parameters", "page.ipynb", limit=SLOW)
def no_cell_of_parameters(folder):
    return [*notebook(folder, cells=[cell("1")]), "number=3"]


@fault("error", "page.ipynb", "parameters", cases={"open": "number = (", "words": "number is 3"}, limit=SLOW)
def parameters_that_are_no_python(folder, text):
    return [*notebook(folder, parameters=text + "  # number"), "number=3"]


@fault("error", "no profile 'q'", limit=SLOW)
def a_profile_that_is_not_there(folder):
    return [*notebook(folder, parameters="profile = 'smoke'"), "profile=q"]


CONTENT = {
    "empty": b"",
    "cut": b'{"cells": [',
    "an empty object": b"{}",
    "a list": b"[]",
    "null": b"null",
    "cells an object": b'{"cells": {},"nbformat": 4, "nbformat_minor": 4, "metadata": {}}',
    "cells of numbers": b'{"cells": [1, 2], "nbformat": 4, "nbformat_minor": 4, "metadata": {}}',
    "cell without source": json.dumps(
        dict(cells=[dict(cell_type="code")], nbformat=4, nbformat_minor=4, metadata=dict(kernelspec=KERNEL))
    ).encode(),
    "binary": bytes(range(256)),
    "a web page": b"<!DOCTYPE html>",
    "a program": b"print(1)\n",
    "old": b'{"worksheets": [], "nbformat": 3, "nbformat_minor": 0, "metadata": {}}',
    "of the future": b'{"cells": [], "nbformat": 5, "nbformat_minor": 0, "metadata": {}}',
    "without a version": b'{"cells": [], "metadata": {}}',
    "deep": b"[" * 100_000,
}


@fault("error", "page.ipynb", cases=CONTENT, limit=SLOW)
def a_notebook_that_is(folder, data):
    command = notebook(folder)
    (folder / "page.ipynb").write_bytes(data)
    return command


@fault("error", "none.ipynb", "no notebook", limit=SLOW)
def a_notebook_that_is_not_there(folder):
    notebook(folder)
    return ["run", "none.ipynb", "out.ipynb"]


@fault("error", "nbs", "no notebook", limit=SLOW)
def a_folder_for_a_notebook(folder):
    notebook(folder)
    return ["run", "nbs", "out.ipynb"]


def untouched(folder, outcome):
    found = json.loads((folder / "page.ipynb").read_text())
    assert [len(cell["outputs"]) for cell in found["cells"]] == [0]


@fault(
    "error",
    "page.ipynb",
    "overwritten",
    cases={"same": "page.ipynb", "dot": "./nbs/../page.ipynb"},
    check=untouched,
)
def its_own_target(folder, target):
    notebook(folder)
    return ["run", "page.ipynb", target]


@fault("error", "page.ipynb", "overwritten", limit=SLOW)
def a_link_to_itself_as_target(folder):
    notebook(folder)
    (folder / "link.ipynb").symlink_to("page.ipynb")
    return ["run", "page.ipynb", "link.ipynb"]


@fault("error", "done", cases={"no ending": "done", "text": "done.txt"}, limit=SLOW)
def a_target_with(folder, target):
    notebook(folder)
    return ["run", "page.ipynb", target]


@fault("error", "folder", limit=SLOW)
def a_folder_as_target(folder):
    notebook(folder)
    (folder / "there.ipynb").mkdir()
    return ["run", "page.ipynb", "there.ipynb"]


@fault(
    "error", "folder", cases={"a file": "page.ipynb/out.ipynb", "a device": "/dev/null/out.ipynb"}, limit=SLOW
)
def a_target_below(folder, target):
    notebook(folder)
    return ["run", "page.ipynb", target]


def no_target(folder, outcome):
    assert not (folder / "out" / "done.ipynb").exists()


@fault("error", "ZeroDivisionError", "cell 3", "done.failed.ipynb", limit=SLOW, check=no_target)
def a_cell_that_fails(folder):
    return notebook(folder, "a = 1", "1 / 0")


@fault("error", "ValueError", "the last line", "cell 2", limit=SLOW)
def an_error_of_many_lines(folder):
    return notebook(folder, "raise ValueError('first\\nthe last line')")


@fault("error", "SyntaxError", "cell 2", limit=SLOW)
def a_cell_that_is_no_python(folder):
    return notebook(folder, "a = (")


@fault("error", "done.ipynb", "ended", limit=SLOW, check=no_target)
def a_kernel_that_dies(folder):
    return notebook(folder, "import os; os._exit(1)")


@fault("error", "page.ipynb", "names no kernel")
def a_notebook_without_a_kernel(folder):
    return notebook(folder, metadata={})


@fault("right", limit=SLOW)
def a_kernel_that_is_not_installed(folder):
    return notebook(
        folder, metadata=dict(kernelspec=dict(name="nonesuch", display_name="x", language="python"))
    )


DEFAULTS = "alpha = 0.1\nn = 3\nname = 'a'\nitems = [1, 2]\nflag = False\nother = None\npair = {'a': 1}"
TYPED = {
    "a small number": ("alpha=1e-3", "alpha == 0.001"),
    "no number": ("alpha=nan", "alpha != alpha"),
    "infinity": ("alpha=-inf", "alpha == float('-inf')"),
    "a whole number for a number": ("alpha=3", "type(alpha) is float and alpha == 3"),
    "leading zeros": ("n=007", "n == 7"),
    "an octal look": ("n=010", "n == 10"),
    "a huge integer": ("n=-1" + "0" * 400, "n == -10**400"),
    "a share for a whole number": ("n=0.5", "n == 0.5"),
    "a text of digits": ("name=007", "name == '007'"),
    "a text like a number": ("name=1e-3", "name == '1e-3'"),
    "a text like a truth": ("name=no", "name == 'no'"),
    "a text like a list": ("name=[1, 2]", "name == '[1, 2]'"),
    "an empty text": ("name=", "name == ''"),
    "a quoted text": ("name='x y'", "name == 'x y'"),
    "yes": ("flag=YES", "flag is True"),
    "a list": ('items=["a", 2.5]', "items == ['a', 2.5]"),
    "an object": ('pair={"b": [1]}', "pair == {'b': [1]}"),
    "a number for None": ("other=1e-3", "other == 0.001"),
    "a list for None": ("other=[1, 2]", "other == [1, 2]"),
    "null": ("alpha=null", "alpha is None"),
}


@fault("right", limit=SLOW, cases=TYPED)
def a_value_by_its_default(folder, given):
    return [*notebook(folder, f"assert {given[1]}", parameters=DEFAULTS), given[0]]


WRONG_TYPES = {
    "a word for a number": ("alpha=few", "a number"),
    "a truth for a number": ("alpha=true", "a number"),
    "beyond float64": ("alpha=1e999", "a number"),
    "a list for a number": ("n=[1]", "a number"),
    "nothing for a number": ("n=", "a number"),
    "a word for a truth": ("flag=perhaps", "true or false"),
    "two for a truth": ("flag=2", "true or false"),
    "a number for a list": ("items=8", "JSON"),
    "words for a list": ("items=a b", "JSON"),
    "an object for a list": ('items={"a": 1}', "JSON"),
    "an open list": ("items=[1, 2", "JSON"),
    "a list for an object": ("pair=[1]", "JSON"),
}


@fault("error", "in the notebook", limit=SLOW, cases=WRONG_TYPES)
def a_value_of_another_type(folder, given):
    return [*notebook(folder, parameters=DEFAULTS), given[0]]


def own_default(folder, outcome):
    assert "note:" not in outcome.err


@fault("right", limit=SLOW, check=own_default)
def a_parameter_called_like_a_key_of_a_profile(folder):
    command = notebook(folder, "assert items == [1, 2]", parameters="items = [1, 2]")
    (folder / "settings.ini").write_text(INI + "items = 8\n")
    return command


def said(folder, outcome):
    assert "note: items = 8: from [profile.smoke]" in outcome.err


@fault("right", limit=SLOW, check=said)
def a_parameter_that_a_profile_fills(folder):
    command = notebook(folder, "assert items == 8", parameters="profile = 'smoke'\nitems = 1")
    (folder / "settings.ini").write_text(INI + "items = 8\n")
    return command


@fault("error", "TARGET: x.ipynb", "link", cases=dict(gone="gone/y.ipynb", ring="x.ipynb"))
def a_target_that_is_a_link_to_nowhere(folder, target):
    notebook(folder)
    (folder / "x.ipynb").symlink_to(target)
    return ["run", "page.ipynb", "x.ipynb"]
