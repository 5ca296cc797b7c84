"""Form of the pages about papers: short cells, sources, what to change, and nothing stored with an error."""

import json

import nbformat
import pytest

from uetrust.core.settings import root

FOLDERS = ("people", "ice", "fflm", "narcissism", "threshold", "ledger")
PAGES = [
    page for name in FOLDERS for page in sorted((root() / "nbs/experiments" / name).glob("[0-9]*.ipynb"))
]


def code_cells(page):
    return [cell for cell in nbformat.read(page, 4).cells if cell.cell_type == "code"]


def test_all_pages_are_looked_at():
    assert len(PAGES) == 22


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_cells_of_a_page_are_short(page):
    for cell in code_cells(page):
        lines = cell.source.splitlines()
        assert len(lines) <= 15 or all(not line or line[0] in "fi )" for line in lines), cell.source


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_where_its_numbers_come_from_and_what_to_change(page):
    cells = nbformat.read(page, 4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert sum("page.opening(" in source for source in code) == 1 and "page.close(" in code[-1]
    assert [cell.source for cell in cells if cell.cell_type == "markdown"][-2] == "## Change this"
    parameters = next(cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
    assert parameters.splitlines()[0].startswith("profile = ") and parameters.splitlines()[-1].startswith(
        "out = "
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_was_stored_without_errors(page):
    outputs = [output for cell in code_cells(page) for output in cell.outputs]
    assert any("Profile **" in json.dumps(output) for output in outputs)
    assert not any(output.output_type == "error" for output in outputs)
