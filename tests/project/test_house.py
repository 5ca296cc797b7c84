"""The rules of the house: where a thing may live, what it may be called, how long a line or a function is."""

import ast
import doctest
import importlib
import json
import re
import subprocess
import sys
from collections import Counter

import nbformat
import numpy as np
import pytest

import uetrust
from tests.helpers.paths import ROOT

WINGS = sorted(path.name for path in (ROOT / "nbs").glob("[0-9][0-9]_*"))
LIBRARY = sorted(path for wing in WINGS for path in (ROOT / "nbs" / wing).rglob("[0-9]*.ipynb"))


def code(path):
    "The code of a notebook; lines that only nbdev or Jupyter understand are left out"
    cells = [c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    return "\n".join(re.sub(r"^[#%!].*$", "", source, flags=re.M) for source in cells)


def module(path):
    text = "\n".join(c.source for c in nbformat.read(path, 4).cells if c.cell_type == "code")
    return re.search(r"^#\|\s*default_exp\s+(\S+)", text, re.M)[1]


MODULES = {module(path): i for i, path in enumerate(LIBRARY)}  # In reading order


def imported(path):
    "Modules of the library that a notebook imports, anywhere, by a statement or by a string"
    for node in ast.walk(ast.parse(code(path))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = node.value.removeprefix("uetrust.")
            yield from [named] if named in MODULES else []
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "uetrust":
            at = node.module.removeprefix("uetrust").lstrip(".")
            inside = [f"{at}.{alias.name}".lstrip(".") for alias in node.names]
            yield from [name for name in [at, *inside] if name in MODULES]
        if isinstance(node, ast.Import):
            yield from [a.name[8:] for a in node.names if a.name.removeprefix("uetrust.") in MODULES]


def test_there_are_thirteen_wings_and_every_module_is_in_the_one_of_its_notebook():
    assert [int(wing[:2]) for wing in WINGS] == list(range(1, 14))
    for path in LIBRARY:
        parts = [re.sub(r"^\d+_", "", part) for part in path.relative_to(ROOT / "nbs").with_suffix("").parts]
        assert module(path) == ".".join(parts)


@pytest.mark.parametrize("path", LIBRARY, ids=lambda p: p.relative_to(ROOT / "nbs").as_posix())
def test_a_notebook_imports_only_what_stands_before_it(path):
    here = MODULES[module(path)]
    assert not {name for name in imported(path) if MODULES[name] > here}


SHIPPED = [p for p in (ROOT / "nbs").rglob("*.ipynb") if "12_dev" not in p.parts and p.name[0] != "."]


def test_only_dev_imports_dev():
    "Training and benchmarks are not in the wheel, so no command and no page may need them."
    needing = [path.name for path in SHIPPED if re.search(r"\buetrust(\.| import )dev\b", code(path))]
    assert len(SHIPPED) > 200 and needing == []


PRIVATE_WORDS = "told said asked beside besides lacks lost apart wanted taken awaited".split()
MODULES_TEXT = [p.read_text() for p in (ROOT / "uetrust").rglob("*.py") if p.name != "_modidx.py"]


def test_standard_terms_stand_where_private_words_were():
    "At most 5 in 1,000 lines of the package."
    text = "\n".join(MODULES_TEXT).lower()
    found = Counter(re.findall(rf"(?<![a-z])({'|'.join(PRIVATE_WORDS)})(?![a-z])", text))
    assert found.total() / text.count("\n") < 0.005, found


def test_there_are_as_many_examples_as_exported_cells():
    sources = [c.source for path in LIBRARY for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    exported = sum(bool(re.match(r"#\|\s*exports?\b", source)) for source in sources)
    examples = sum(bool(source.strip()) and not source.startswith("#|") for source in sources)
    assert 0 < exported <= examples


def test_no_folder_of_notebooks_is_long():
    counts = Counter(path.parent for path in (ROOT / "nbs").rglob("*.ipynb") if path.parent.name[0] != ".")
    assert {folder: n for folder, n in counts.items() if n > 17} == {}


def test_every_number_of_a_folder_stands_once():
    paths = [path for path in (ROOT / "nbs").rglob("[0-9]*") if not path.parts[-2].startswith(".")]
    counts = Counter((path.parent, path.name.partition("_")[0]) for path in paths)
    assert [f"{folder.name}/{number}" for (folder, number), n in counts.items() if n > 1] == []


def public(name):
    return importlib.import_module(f"uetrust.{name}").__all__


SHARED = set()  # Public names of two modules; this list may only shrink


def test_no_public_name_is_in_two_modules():
    counts = Counter(name for module in MODULES for name in public(module))
    assert {name for name, n in counts.items() if n > 1} == SHARED


@pytest.mark.parametrize("command", [["format", "--check", "."], ["check", "."]], ids=" ".join)
def test_ruff_is_content(command):
    subprocess.run([sys.executable, "-m", "ruff", *command], cwd=ROOT, check=True)


def functions():
    "Functions of the library with their number of lines, decorators and docstring included"
    for name in MODULES:
        tree = ast.parse((ROOT / "uetrust" / f"{name.replace('.', '/')}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield f"{name}.{node.name}", node.end_lineno - node.lineno + 1


def test_functions_are_short():
    lengths = dict(functions())
    assert np.percentile(list(lengths.values()), 90) <= 25 and np.median(list(lengths.values())) <= 10


def test_the_package_says_what_its_wings_hold():
    for wing in WINGS:
        assert importlib.import_module(f"uetrust.{wing[3:]}").__doc__.strip().endswith(".")


def test_the_public_face_is_small_and_lazy():
    assert 20 <= len(uetrust.__all__) <= 60 and sorted(uetrust.__all__) == list(uetrust.__all__)
    assert set(uetrust.__all__) <= set(dir(uetrust))


SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Examples")


@pytest.mark.parametrize("name", uetrust.__all__)
def test_a_public_name_explains_itself(name):
    "One line in the field's terms, what goes in, what comes out, and an example that runs."
    doc = getattr(uetrust, name).__doc__
    first, *rest = doc.splitlines()
    assert 15 <= len(first) <= 110
    titles = [line for line, under in zip(rest, rest[1:]) if line in SECTIONS and set(under) == {"-"}]
    assert titles[-1] == "Examples" and (len(titles) > 1 or name == "Undefined")
    for title, text in re.findall(r"^(Parameters|Returns)\n-+\n((?:.+\n)+)", doc + "\n", re.M):
        assert "    " in text, f"{title} of {name} have no comment"


@pytest.mark.parametrize("name", uetrust.__all__)
def test_the_example_of_a_public_name_runs(name):
    text = getattr(uetrust, name).__doc__
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    runner = doctest.DocTestRunner()
    runner.run(example)
    assert runner.tries and not runner.failures


def test_the_first_page_links_every_module_and_experiment_and_no_page_that_is_gone():
    cells = json.loads((ROOT / "nbs" / "index.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = ["".join(o.get("data", {}).get("text/markdown", "")) for c in cells for o in c.get("outputs", [])]
    links = re.findall(r"\]\(([^)]+)\)", "".join(shown))
    experiments = sorted((ROOT / "nbs" / "experiments").rglob("[0-9]*.ipynb"))
    pages = [*in_folders(LIBRARY), *experiments]
    assert links == [path.relative_to(ROOT / "nbs").as_posix() for path in pages]


def in_folders(paths):
    "Pages of a wing before those of its parts"
    return sorted(paths, key=lambda path: (path.parent, path))
