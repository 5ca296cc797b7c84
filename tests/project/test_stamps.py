"""A page that has changed, or whose module or data have, is executed again; another is passed over."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest

from tests.helpers.paths import ROOT
from tests.helpers.stamps import Tree, page_code, tree

PAGE = "nbs/03_ue/03_density.ipynb"


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    "The package, two pages, data and settings; a test leaves them as they were"
    tmp_path = tmp_path_factory.mktemp("copy")
    for name in ("uetrust", "pins", "tests"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "data", tmp_path / "data", ignore=shutil.ignore_patterns("models", "world"))
    for name in ("settings.ini", "pyproject.toml", PAGE, "nbs/index.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def append(text):
    return lambda code: code + text


def with_one_more_line(page):
    nb = json.loads(page)
    next(cell for cell in nb["cells"] if cell["cell_type"] == "code")["source"] += ["\n1 + 1"]
    return json.dumps(nb)


CHANGES = {
    "the page": (PAGE, with_one_more_line),
    "a module that it imports": ("uetrust/core/registry.py", append("\n# changed\n")),
    "a module behind that": ("uetrust/core/checks.py", append("\n# changed\n")),
    "settings.ini": ("settings.ini", append("\n")),
    "the versions of libraries": ("pins/constraints.txt", append("\n")),
    "a datum that nobody names": ("data/zoo.csv", append("x\n")),
}
NO_CHANGES = {
    "a module that it cannot reach": ("uetrust/report/plots.py", append("\n# changed\n")),
    "a test": ("tests/conftest.py", append("\n# changed\n")),
    "the seconds of tests": ("data/test_seconds.csv", append("x\n")),
    "another page": ("nbs/index.ipynb", append("\n")),
}


@pytest.fixture(scope="module")
def before(copy):
    return Tree(copy).fingerprint(copy / PAGE)


@contextmanager
def changed(path, change):
    code = path.read_text(encoding="utf-8")
    new = change(code)
    assert new != code, f"{path.name} has nothing left that this test changes"
    path.write_text(new, encoding="utf-8")
    yield
    path.write_text(code, encoding="utf-8")


@pytest.mark.parametrize("what", [*CHANGES, *NO_CHANGES])
def test_a_stamp_holds_until_something_changes_that_the_page_can_reach(copy, before, what):
    name, change = (CHANGES | NO_CHANGES)[what]
    with changed(copy / name, change):
        assert (Tree(copy).fingerprint(copy / PAGE) == before) == (what in NO_CHANGES)


def test_a_page_reaches_what_it_takes_from_the_face_or_names_in_a_string():
    reached = tree().reached
    assert "uetrust.evaluation.prr" in reached("from uetrust import prr")
    assert "uetrust.evaluation.prr" in reached("import uetrust\nuetrust.prr")
    assert "uetrust.evaluation.prr" not in reached("import uetrust\nuetrust.load_samples")
    assert "uetrust.nlg.qa" in reached("from importlib import import_module\nimport_module('uetrust.nlg.qa')")
    assert "uetrust.nlg.overlap" in reached("from uetrust.statistics.scores import load_scores")


def test_a_page_that_shows_published_numbers_depends_on_them():
    pages = [page for page in tree().pages if page.name == "02_claims.ipynb"]
    for page in pages:
        paths, _ = tree().files(page_code(page)[0])
        assert any("published" in path.parts for path in paths), page


def run_pages(root, *part):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-k", "03_density"]
        + ["tests/project/test_notebooks.py", *part],
        cwd=root,
        env=os.environ | dict(PYTHONPATH=str(root)),
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout


def test_a_mutant_that_only_a_page_would_notice_is_caught(copy):
    "The page runs and is stamped, is passed over, and runs again when a module behind it has changed."
    (copy / "tests" / "stamps.json").unlink(missing_ok=True)
    assert run_pages(copy)[0] == 0 and list(json.loads((copy / "tests" / "stamps.json").read_text())) == [
        PAGE
    ]
    code, said = run_pages(copy, "--part=short")
    assert code == 0 and "1 skipped" in said and "unchanged since it was last green" in said
    assert "1 passed" in run_pages(copy, "--part=rest")[1]
    with changed(copy / "uetrust" / "core" / "registry.py", lambda code: code.replace("class ", "class X")):
        code, said = run_pages(copy, "--part=short")
        assert code != 0 and "skipped" not in said
