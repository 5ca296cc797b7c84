"""Notebooks and parameters that cannot run: `uetrust run`."""

import json

from faults.harness import fault

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


@fault("error", "'nubmer'", "did you mean 'number'", limit=SLOW)
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
