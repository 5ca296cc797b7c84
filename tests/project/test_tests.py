"""The tests mirror the package: each module has its file, and what files share is in tests/helpers."""

import ast
import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.helpers import parts
from tests.helpers.paths import ROOT, TESTS

MODULES = sorted(
    path.relative_to(ROOT / "uetrust").with_suffix("")
    for path in (ROOT / "uetrust").rglob("*.py")
    if path.stem not in ("__init__", "__main__", "_modidx")
)
FILES = sorted(TESTS.rglob("test_*.py"))


def own_file(module):
    return TESTS / module.parent / f"test_{module.name}.py"


def is_test(node):
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


@pytest.mark.parametrize("module", MODULES, ids=lambda path: ".".join(path.parts))
def test_a_module_has_its_file_with_a_test_in_it(module):
    assert own_file(module).is_file(), f"{own_file(module).relative_to(ROOT)} is not there"
    assert any(map(is_test, ast.parse(own_file(module).read_text()).body))


def test_a_file_is_named_after_its_module_or_a_part_of_it_or_is_of_the_whole_project():
    named = {}
    for module in MODULES:
        named.setdefault(TESTS / module.parent, []).append(f"test_{module.name}")
    strange = [
        path.relative_to(ROOT).as_posix()
        for path in FILES
        if path.parent != TESTS / "project"
        and not any(f"{path.stem}_".startswith(f"{name}_") for name in named.get(path.parent, ()))
    ]
    assert strange == []


def imported(node):
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module or ''}.{alias.name}" for alias in node.names]
    return []


def code_of(source):  # The file, and what its strings hold that is Python: scripts of other processes
    tree = ast.parse(source)
    yield tree
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "import" in node.value:
            try:
                yield ast.parse(node.value)
            except SyntaxError:
                continue


def test_no_file_imports_a_file_of_tests():
    paths = [path for path in TESTS.rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in paths
        for tree in code_of(path.read_text())
        for node in ast.walk(tree)
        for name in imported(node)
        if any(part.startswith("test_") or part == "conftest" for part in name.split(".")[:-1])
        or (name.startswith("tests.") and name.rpartition(".")[2].startswith("test_"))
    ]
    assert found == []


def test_a_folder_of_tests_is_a_package_so_that_equal_names_do_not_clash():
    folders = {path.parent for path in TESTS.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_helper_is_used_and_is_no_test():
    helpers = {path.stem: path for path in (TESTS / "helpers").glob("*.py") if path.stem != "__init__"}
    texts = "\n".join(path.read_text() for path in [*TESTS.rglob("*.py"), *(ROOT / "scripts").glob("*.py")])
    for name, path in helpers.items():
        assert f"tests.helpers.{name} import" in texts or f"from tests.helpers import {name}" in texts, name
        assert not any(map(is_test, ast.parse(path.read_text()).body)), name
        importlib.import_module(f"tests.helpers.{name}")


def test_every_mutant_that_must_be_dead_names_a_test_that_is_there():
    text = (TESTS / "mutants_named.txt").read_text()
    named = re.findall(r"^[\w.]+: ([\w.]+)::(\w+)$", text, re.M)
    gone = [
        (file, name)
        for file, name in named
        if f"\ndef {name}(" not in own_file(Path(*file.split("."))).read_text()
    ]
    assert len(named) > 20 and gone == []


def test_the_short_part_keeps_to_its_seconds():
    "What `make test` runs, on two processes; the environment and the collection of tests come on top."
    table = parts.seconds()
    table = table[table["test"] != parts.LEFT_OUT]
    short = table[(table["seconds"] <= parts.LONG) | (table["test"] == parts.OTHERS)]
    assert len(table) > 100 and short["seconds"].sum() / 2 <= 300
    named = table[~table["test"].isin([parts.OTHERS])]
    texts = {name: (ROOT / name).read_text() for name in set(table["file"])}
    rows = zip(named["file"], named["test"].str.extract(r"^(\w+)", expand=False))
    assert [(file, test) for file, test in rows if f"def {test}(" not in texts[file]] == []


def test_every_test_has_the_same_name_on_every_machine(request):
    assert [item.nodeid for item in request.session.items if str(ROOT) in item.nodeid] == []


def item(name, *fixtures, marker=None):
    found = {marker: marker}.get
    return SimpleNamespace(nodeid=name, fixturenames=fixtures, get_closest_marker=found)


def test_every_test_is_in_a_part_and_a_shortened_one_in_both(monkeypatch):
    took = [("a.py", "test_long", 9.0), ("a.py", "test_short", 0.45), ("a.py", parts.OTHERS, 50.0)]
    monkeypatch.setattr(parts, "seconds", lambda: parts._table(took))
    items = [
        item("a.py::test_long"),
        item("a.py::test_short"),
        item("a.py::test_new"),
        item("b.py::test_page", "stamped"),
        item("b.py::test_x", marker="long"),
    ]
    short, rest = (parts.of_part(name, items) for name in ("short", "rest"))
    assert [one.nodeid for one in short] == ["a.py::test_short", "a.py::test_new", "b.py::test_page"]
    assert [one.nodeid for one in rest] == ["a.py::test_long", "b.py::test_page", "b.py::test_x"]
    assert parts.of_part(None, items) == items


def test_seconds_are_kept_by_test_and_the_rest_of_a_file_together(tmp_path, monkeypatch):
    before = parts._table([("a.py", "test_gone", 3.0), ("b.py", "test_kept", 2.0)])
    monkeypatch.setattr(parts, "seconds", lambda: before)
    took = [("a.py::test_x[1]", 0.4), ("a.py::test_x[1]", 0.8), ("a.py::test_y", 0.1), ("a.py::test_z", 0.2)]
    reports = [SimpleNamespace(nodeid=name, duration=seconds, keywords=()) for name, seconds in took]
    reports.append(SimpleNamespace(nodeid="a.py::test_m", duration=5.0, keywords=["long"]))
    parts.keep(tmp_path / "s.csv", reports)
    lines = (tmp_path / "s.csv").read_text().splitlines()
    marked = "a.py,others with the marker long,5.0"
    rows = ["a.py,others,0.3", marked, "a.py,test_x[1],1.2", "b.py,test_kept,2.0"]
    assert lines == ["file,test,seconds", *rows]
    parts.keep(tmp_path / "s.csv", reports[:1], "short")
    assert "a.py,test_gone,3.0" in (tmp_path / "s.csv").read_text().splitlines()
