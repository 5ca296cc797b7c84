"""Slides of lessons: they fetch nothing, hold every heading, and escape what is printed."""

from html.parser import HTMLParser

import nbformat

from tests.helpers.lessons import cells
from tests.helpers.paths import ROOT
from uetrust.cli.cli import main
from uetrust.report.lessons.slides import write_slides

# Slides


class Loads(HTMLParser):
    "What a page would fetch, and its slides"

    def __init__(self, text):
        super().__init__()
        self.found, self.slides = [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.slides += tag == "section"
        if tag != "a":
            self.found += [value for key, value in attrs if key in ("src", "href") and value]


def test_slides_fetch_nothing_and_hold_every_heading(tmp_path):
    path = ROOT / "nbs/lessons/1_basics/01_what_is_prr.ipynb"
    assert main(["slides", str(path), "--out", str(tmp_path)]) == 0
    text = (tmp_path / "1_basics-01_what_is_prr.html").read_text()
    page, headings = Loads(text), [t for t in cells(path, "markdown") if t.startswith("## ")]
    assert all(source.startswith("data:image/png;base64,") for source in page.found) and page.found
    assert page.slides == len(headings) + 2  # And the title and the prediction
    assert "@import" not in text and "url(" not in text and "<math" in text
    assert text == write_slides(path, tmp_path).read_text()


def test_slides_escape_code_and_printed_text(tmp_path):
    out = nbformat.v4.new_output("stream", name="stdout", text="<script>alert(1)</script>")
    book = [
        nbformat.v4.new_markdown_cell("# A <b>title"),
        nbformat.v4.new_code_cell("'<script>alert(2)</script>'", outputs=[out]),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=book), tmp_path / "x.ipynb")
    text = write_slides(tmp_path / "x.ipynb", tmp_path).read_text()
    assert text.count("<script>") == 1 and "alert(1)" in text and "<title>A &lt;b&gt;title</title>" in text
