"""Form of the pages on banks: short cells, an out folder, what to change. All pages show what they say."""

import ast
import json

import nbformat
import pytest

from tests.helpers.paths import ROOT

PAGES = sorted(
    path
    for folder in ("banks", "he2024")
    for path in (ROOT / "nbs" / "experiments" / folder).glob("[0-9]*.ipynb")
)


def code_cells(path):
    return [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_has_short_cells_an_out_folder_and_lines_to_change_it(path):
    cells = code_cells(path)
    assert max(len(cell.source.splitlines()) for cell in cells) <= 15
    (parameters,) = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    lines = parameters.splitlines()
    assert lines[0].startswith('profile = "demo"') and lines[-1].startswith('out = ""')
    assert all(line.count("=") == 1 for line in lines)
    markdown = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "markdown"]
    assert markdown[-2] == "## Change this" and f"uetrust run {path.relative_to(ROOT)} " in markdown[-1]
    assert not any('say(f"' in cell.source for cell in cells)


def test_a_page_writes_to_the_folder_that_out_names(tmp_path, monkeypatch):
    "The printed tables need nothing else, so the page is fast"
    path = ROOT / "nbs/experiments/he2024/01_setting.ipynb"
    space = {}
    for cell in code_cells(path):
        source = cell.source.replace('out = ""', f"out = {json.dumps(str(tmp_path))}").replace("2000", "50")
        exec(source, space)
    assert (tmp_path / "tables" / "table07.csv").exists() and (tmp_path / "figures" / "fig03.csv").exists()


EXPERIMENTS = sorted((ROOT / "nbs" / "experiments").glob("*/[0-9]*.ipynb"))


def not_shown(source):
    "Lines of a cell that keep a sentence or a figure for the report, and do not show it"
    body = ast.parse(source).body
    for node in ast.walk(ast.Module(body, [])):
        if isinstance(node, ast.Expr) and node is not body[-1] and isinstance(node.value, ast.Call):
            if ast.unparse(node.value.func) in ("page.say", "page.answer", "page.figure", "page.picture"):
                yield node.lineno


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_page_shows_what_it_says(path):
    "Jupyter shows the last expression of a cell, and nothing of a block"
    found = {i: list(not_shown(cell.source)) for i, cell in enumerate(code_cells(path))}
    assert {i: lines for i, lines in found.items() if lines} == {}


def test_a_sentence_that_is_not_shown_is_found():
    assert list(not_shown("page.say(one)\npage.table(rows)")) == [1]
    assert list(not_shown("if rows:\n    page.answer(one)")) == [2]
    assert list(not_shown("shown = page.say(one)\ndisplay(page.say(two))\npage.say(three)")) == []
