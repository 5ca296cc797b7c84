"""Every experiment by "Run All" in a fresh clone: no runs, mirror or network, nothing but its defaults."""

import os
import shutil

import nbformat
import pytest

from tests.helpers.paths import ROOT

BOOKS = sorted(path.relative_to(ROOT) for path in (ROOT / "nbs" / "experiments").glob("*/*.ipynb"))
PROFILE = (ROOT / "nbs" / "change_one_thing.ipynb").relative_to(ROOT)


@pytest.fixture
def fresh(tmp_path):
    "A copy without runs; a mirror would lie beside it, and does not"
    clone = tmp_path / "clone"
    shutil.copytree(ROOT / "nbs", clone / "nbs", ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    shutil.copy(ROOT / "settings.ini", clone)
    (clone / "data").symlink_to(ROOT / "data")
    return clone


def ends(clone, book):
    "How a notebook ends in its own folder: '' or the error that its reader sees"
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError

    path = clone / book
    client = NotebookClient(
        nbformat.read(path, 4),
        timeout=900,
        kernel_name="python3",
        resources={"metadata": {"path": path.parent}},
    )
    nowhere = dict(UETRUST_OFFLINE="1", UETRUST_MIRROR=str(clone / "none"))
    env = os.environ | dict(PYTHONPATH=str(ROOT), UETRUST_CACHE=str(clone.parent / "cache")) | nowhere
    try:
        client.execute(env=env)
    except CellExecutionError as error:
        return f"{error.ename}: {error.evalue}"
    return ""


@pytest.mark.own_target
@pytest.mark.parametrize("book", BOOKS, ids=str)
def test_a_page_runs_alone(fresh, book):
    "It ends, or says which public data it needs and where they would be taken from; it writes in runs only"
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "data").rglob("*") if path.is_file()}
    end = ends(fresh, book)
    assert not end or (end.startswith("DataNotAtHand: ") and "UETRUST_" in end), end
    assert before == {path: path.stat().st_mtime_ns for path in (ROOT / "data").rglob("*") if path.is_file()}
    assert {path.name for path in fresh.iterdir()} <= {"nbs", "settings.ini", "data", "runs"}


@pytest.mark.parametrize("book", BOOKS, ids=str)
def test_a_page_can_write_elsewhere(book):
    "Both parameters that a reader needs, with a default profile that settings.ini has"
    from uetrust.cli.notebooks import notebook_defaults
    from uetrust.core.settings import section_names

    found = notebook_defaults(ROOT / book)
    assert found["out"] == '""' and found["profile"].strip('"') in section_names("profile")


def test_the_profile_of_the_page_can_be_planned(fresh, monkeypatch, capsys):
    "The section that the page prints, appended to settings.ini as it says"
    from uetrust.cli.cli import main
    from uetrust.core import settings as project

    text = "\n".join(cell.source for cell in nbformat.read(ROOT / PROFILE, 4).cells)
    section = text[text.index("[profile.mine]") :].split("```")[0]
    with open(fresh / "settings.ini", "a") as file:
        file.write("\n" + section)
    monkeypatch.chdir(fresh)
    for cached in (project.root, project._read):
        cached.cache_clear()
    try:
        assert not main(["plan", "mine"])
    finally:
        monkeypatch.undo()
        for cached in (project.root, project._read):
            cached.cache_clear()
    assert "profile mine: 1 sets of generations, 132 texts" in capsys.readouterr().out
