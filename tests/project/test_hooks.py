"""What git stores of a notebook that was opened and run: what has changed, and nothing else."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import yaml

from tests.helpers.paths import ROOT

LESSON = Path("nbs") / "lessons" / "1_basics" / "01_what_is_prr.ipynb"  # With pictures and a widget
RUN_ALL = """
import sys, nbformat
from nbclient import NotebookClient
nb = nbformat.read(sys.argv[1], 4)
NotebookClient(nb, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
nbformat.write(nb, sys.argv[1])
"""
EDITOR = dict(  # What JupyterLab notes when it saves
    kernelspec=dict(display_name="Python 3 (ipykernel)", language="python", name="python3"),
    toc=dict(base_numbering=1),
)


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    "A repository with one lesson, in the environment of the checkout, after `make hooks`"
    folder = tmp_path_factory.mktemp("hooks") / "clone"
    for name in (LESSON, "pyproject.toml", "Makefile", ".gitattributes", ".gitignore", "settings.ini"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    shutil.copytree(ROOT / "scripts", folder / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / ".venv").mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (folder / ".venv" / name).symlink_to(Path(sys.prefix) / name)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "one lesson")
    make_hooks(folder)
    return folder


def make_hooks(folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    subprocess.run(["make", "-o", ".venv/.ready", "hooks"], cwd=folder, check=True, env=env)


def git(folder, *words):
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def changed(folder, *options):
    "Lines that git would store anew, added and removed"
    rows = git(folder, *options, "diff", "--numstat").splitlines()
    return sum(int(number) for row in rows for number in row.split("\t")[:2])


def run_all(folder):
    env = os.environ | dict(PYTHONPATH=str(ROOT), IPYTHONDIR=str(folder.parent / "ipython"))
    env.pop("MPLBACKEND")
    command = [folder / ".venv" / "bin" / "python", "-c", RUN_ALL, LESSON]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    nb = nbformat.read(folder / LESSON, 4)
    nb.metadata.update(EDITOR)
    nbformat.write(nb, folder / LESSON)


def test_the_first_status_of_a_fresh_clone_cleans_no_notebook(clone, tmp_path):
    "Git reads files again that are as old as its index, as all are in a clone."
    seconds, log = time.time() - 100, tmp_path / "cleaned"
    os.utime(clone / LESSON, (seconds, seconds))
    git(clone, "-c", "filter.notebook.clean=cat", "add", ".")
    os.utime(clone / ".git" / "index", (seconds, seconds))
    make_hooks(clone)
    assert git(clone, "-c", f"filter.notebook.clean=tee -a {log}", "status", "--porcelain") == ""
    assert not log.exists()


@pytest.mark.long
def test_run_all_leaves_no_difference_and_an_edit_leaves_its_own(clone):
    run_all(clone)
    assert (
        changed(clone, "-c", "filter.notebook.clean=cat") > 100
        and "widgets" in nbformat.read(clone / LESSON, 4).metadata
    )
    assert changed(clone) == 0
    nb = json.loads((clone / LESSON).read_text())
    nb["cells"][4]["source"][0] = "A model has summarised six letters.\n"
    (clone / LESSON).write_text(json.dumps(nb))
    assert changed(clone) == 2
    git(clone, "add", ".")
    git(clone, "-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-q", "-m", "letters")
    stored = json.loads(git(clone, "show", f"HEAD:{LESSON.as_posix()}"))
    assert set(stored["metadata"]) == {"executed_sha", "kernelspec"}
    assert {cell["execution_count"] for cell in stored["cells"] if "execution_count" in cell} == {None}


def test_all_notebooks_are_stored_as_the_hook_leaves_them(monkeypatch):
    "Else git would call a fresh clone changed; the tag `parameters` stays"
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    import nbs

    paths = nbs.notebooks()
    found = [path for path in paths if nbs.written(nbs.cleaned(nbs.read(path))) != path.read_text("utf-8")]
    assert len(paths) > 200 and found == []
    page = nbs.cleaned(nbs.read(ROOT / "nbs" / "experiments" / "people" / "01_human.ipynb"))
    assert [cell for cell in page["cells"] if cell["metadata"].get("tags") == ["parameters"]]


def test_the_hooks_before_a_commit_are_local_and_do_the_same(tmp_path):
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = {hook["id"]: hook for repo in config["repos"] for hook in repo["hooks"]}
    assert {repo["repo"] for repo in config["repos"]} == {"local"}
    assert {hook["language"] for hook in hooks.values()} == {"system"}
    raw = nbformat.read(ROOT / LESSON, 4)
    raw.metadata.update(EDITOR, widgets={"application/vnd.jupyter.widget-state+json": {}})
    nbformat.write(raw, tmp_path / "page.ipynb")
    python, *words = hooks["notebooks"]["entry"].split()
    assert python == ".venv/bin/python"
    subprocess.run([sys.executable, *words, tmp_path / "page.ipynb"], cwd=ROOT, check=True)
    assert (tmp_path / "page.ipynb").read_bytes() == (ROOT / LESSON).read_bytes()


def test_jupyterlab_starts_with_the_hooks_and_with_figures(clone):
    "The backend that make sets for its other targets shows none in a notebook"
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    make = ["make", "-n", "-o", ".venv/.ready", "lab"]
    said = subprocess.run(make, cwd=clone, capture_output=True, text=True, check=True, env=env).stdout
    assert "git config filter.notebook.clean" in said and "env -u MPLBACKEND .venv/bin/jupyter lab" in said
