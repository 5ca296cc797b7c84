"""What a page directly in nbs/ says."""

import re

import nbformat

from tests.helpers.paths import ROOT


def page_cells(page):
    return nbformat.read(ROOT / "nbs" / f"{page}.ipynb", 4).cells


def page_markdown(page):
    "What its authors wrote"
    return "\n".join(cell.source for cell in page_cells(page) if cell.cell_type == "markdown")


def page_text(page):
    "What a reader sees: the same with stored outputs; of a table the words"
    outputs = [output.get("data", {}) for cell in page_cells(page) for output in cell.get("outputs", [])]
    tables = [re.sub(r"<[^>]+>", " ", data.get("text/html", "")) for data in outputs]
    return "\n".join([page_markdown(page), *(data.get("text/markdown", "") for data in outputs), *tables])
