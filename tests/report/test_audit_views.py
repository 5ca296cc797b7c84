"""An audit as it is shown: one page that can be mailed, a part of a notebook, a text of few lines."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from tests.helpers.browser import page_problems
from uetrust.cli.cli import main
from uetrust.core.settings import root
from uetrust.report import audit_views
from uetrust.report.audit import Audit, audit
from uetrust.report.pitfalls import Panel

N = 120


def scores(methods=45, n=N, seed=0):
    "People, two metrics, many methods that know a little, a baseline, ties, and a column of nothing"
    rng = np.random.default_rng(seed)
    human = rng.normal(size=n)
    df = pd.DataFrame(dict(id=[f"t{i}" for i in range(n)], human=human, rougeL=human + rng.normal(size=n)))
    for i in range(methods):
        df[f"method_{i:02}"] = -human + (1 + i / 5) * rng.normal(size=n)
    for i in range(6):
        df[f"tied_{i}"] = ((-human + rng.normal(size=n)) > 1.5).astype(float)
    return df.assign(n_tokens=rng.integers(5, 60, n), mystery=rng.normal(size=n))


def methods_of(df):
    return [name for name in df if name.startswith(("method", "tied", "n_tokens"))]


@pytest.fixture(scope="module")
def many():
    df = scores()
    return audit(df, quality=["human", "rougeL"], uncertainty=methods_of(df), length="n_tokens")


def command(folder, df, *words):
    df.to_csv(folder / "mine.csv", index=False)
    named = ["--quality", "human", "rougeL", "--uncertainty", *methods_of(df)]
    return main(["audit", str(folder / "mine.csv"), *named, "--html", str(folder / "page.html"), *words])


class Outline(HTMLParser):
    "Elements in order, and the text of each kind"

    def __init__(self, text):
        super().__init__()
        self.order, self.open, self.texts = [], [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        kind = dict(attrs).get("class") or tag
        self.order.append(kind)
        self.open.append(kind)
        self.texts.setdefault(kind, []).append("")

    def handle_endtag(self, tag):
        self.open.pop()

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data


# The page
def test_the_page_stands_alone_and_is_small(many):
    page = many.page("Audit of mine.csv")
    assert page.startswith("<!doctype html>") and len(page.encode()) < 300_000
    assert page.count("<svg") == 2 and "<script" not in page and "src=" not in page
    assert re.findall(r'href="([^"]*)"', page) == ["data:,"]


def test_the_page_begins_with_a_claim(many):
    page = Outline(many.page())
    (claim,) = page.texts["answer"]
    assert claim == many.verdict[0] and len(claim.split()) <= 25 and claim.count("(") <= 1
    first = [page.order.index(kind) for kind in ("h1", "answer", "svg", "ol", "details", "dl")]
    assert first == sorted(first)


def test_every_table_has_a_legend_and_words_are_on_the_left(many):
    page = many.page()
    tables = page.split("<table")[1:]
    assert len(tables) == len(many.panels) + 3  # PRR, agreement, columns of the table
    for table in tables:
        assert '<p class="note legend">' in table.partition("</table>")[2][:80]
    assert "95 % interval of the difference" in page and "null ±: 95 % of random orders" in page


def test_a_value_lies_in_its_interval_or_the_interval_is_of_a_difference(many):
    for panel in many.panels.values():
        if {"value", "lo", "hi"} <= set(panel.table):
            rows = panel.table.dropna(subset=["value", "lo", "hi"])
            assert rows["value"].between(rows["lo"], rows["hi"]).all(), panel.title


def test_no_count_has_decimals_and_no_zero_a_sign(many):
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", many.page())
    whole = [cell for cell in cells if re.fullmatch(r"\d+\.000", cell) and float(cell) > 1]
    assert "120" in cells and whole == [] and "-0.000" not in cells


def test_a_figure_shows_twelve_scores_and_names_others(many):
    page = many.page()
    assert page.count("<circle") == 12 and page.count('class="baseline"') == 1
    assert "method_44" in page and "Not in the figure:" in page


def test_the_same_file_gives_the_same_bytes(tmp_path, capsys):
    pages = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        assert command(tmp_path / name, scores(5)) == 0
        pages.append((tmp_path / name / "page.html").read_bytes())
    assert pages[0] == pages[1] and str(tmp_path).encode() not in pages[0]


def test_where_a_page_comes_from(tmp_path, capsys):
    assert command(tmp_path, scores(3), "--id", "id") == 0
    page = (tmp_path / "page.html").read_text()
    source = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", page))
    assert source["File"] == "mine.csv" and re.fullmatch("[0-9a-f]{12}", source["SHA-256, first 12 digits"])
    assert source["Rows"] == "120" and source["Used as quality metric"] == "human, rougeL"
    assert source["Not used"] == "mystery" and source["Version"].startswith("uetrust ")
    named = "uetrust audit mine.csv --quality human rougeL --uncertainty method_00"
    assert source["Command"].startswith(named) and source["Command"].endswith(" --id id")


def test_lessons_are_linked_inside_a_checkout_and_named_elsewhere(many, tmp_path, monkeypatch):
    inside = many.page("Audit", root() / "runs")
    links = re.findall(r'<a href="([^"]*)">([^<]*)<', inside)
    assert len(links) > 3 and all((root() / "runs" / link).is_file() for link, _ in links)
    assert not any(link.startswith(("/", "file")) for link, _ in links)
    outside = many.page("Audit", tmp_path)
    assert "lesson: ties and row order" in outside and "an installed package does not carry them" in outside
    assert str(root()) not in inside + outside + str(many) + many._repr_html_()
    monkeypatch.setattr(audit_views, "root", lambda: tmp_path)
    assert "(lesson: ties and row order)" in str(many) and ".ipynb" not in str(many)


def test_a_page_of_the_site_goes_before_a_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(audit_views, "root", lambda: tmp_path)
    name = "nbs/lessons/1_basics/08_relatives.ipynb"
    site = tmp_path / "docs/_build/html/lessons/1_basics/08_relatives.html"
    (tmp_path / "out").mkdir()
    for path in (tmp_path / name, site):
        assert audit_views._page_address(name, tmp_path / "elsewhere" / "..") != str(path)
        path.parent.mkdir(parents=True)
        path.touch()
        found = audit_views._page_address(name, tmp_path / "out")
        assert (tmp_path / "out" / found).resolve() == path
    assert audit_views._page_address(name, tmp_path.parent) == "" == audit_views._page_address("", tmp_path)
    assert audit_views._page_address(name) == ""


def test_a_notebook_shows_the_same_without_the_style_of_a_page(many):
    part = many._repr_html_()
    assert part.startswith('<div class="audit"><style>') and "<h1" not in part and "body{" not in part
    assert part.count("<svg") == 2 and many.verdict[0] in part and "May be quoted" in part


def test_names_are_text_on_the_page():
    df = scores(2).rename(columns={"method_00": "<b>&\"'"})
    page = audit(df, quality="human", uncertainty=["<b>&\"'", "method_01"]).page("A <i>")
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page and "<h1>A &lt;i&gt;</h1>" in page


def test_without_a_prr_there_is_no_figure():
    found = audit(scores(2).assign(human=3.0), quality="human", uncertainty=["method_00", "method_01"])
    page = found.page()
    assert "<svg" not in page and "human is 3 for every text" in page
    assert "No uncertainty score has a PRR under human" in page and len(found.brief().splitlines()) < 8


def test_few_texts_have_a_page_without_intervals():
    df = scores(2).head(5)
    found = audit(df, quality="human", uncertainty=["method_00", "method_01"])
    assert found.page().count("<svg") == 2 and "nan" not in found.page() + str(found)


# The terminal
def test_a_terminal_shows_45_methods_in_less_than_60_lines(many):
    text = str(many)
    assert len(text.splitlines()) < 60 and text.startswith(many.verdict[0])
    parts = text.split("\n\n")
    assert parts[1].startswith("Columns used:") and parts[2].startswith("method ")
    assert len(parts[2].splitlines()) < 16 and "... and 92 more rows (--out FILE)" in parts[2]
    assert "(baseline)" not in parts[2] and parts[-2].startswith("May be quoted")


def test_findings_of_one_kind_are_one_line(many):
    ties = [line for line in str(many).splitlines() if line.startswith("- Ties decide (6 times): ")]
    assert len(ties) == 1 and "The same holds for tied_" in ties[0]
    assert sum(line.startswith("- ") for line in str(many).splitlines()) <= 4


def test_what_every_row_notes_stands_once():
    df = scores(3, n=20).assign(human=lambda df: (df["human"] > 1).astype(float))
    text = str(audit(df, quality="human", uncertainty=["method_00", "method_01"]))
    assert text.count("interval unreliable") == 1 and "Every row: interval unreliable" in text
    assert "The interval is unreliable" in text


def test_brief_has_at_most_15_lines(many, tmp_path, capsys):
    assert len(many.brief().splitlines()) <= 15
    assert command(tmp_path, scores(), "--brief") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 15 and lines[0] == many.verdict[0]
    assert lines[-1].startswith("May be quoted: On these 120 texts")
    assert sum(line.startswith("method_") for line in lines) == 5


def test_a_panel_of_planning_is_in_the_terminal_and_the_others_are_named(many):
    text = str(many)
    assert f"Power of the next study: {many.panels['next_study'].sentence}" in text
    assert many.panels["joint"].sentence not in text and "On the page (--html FILE): " in text
    assert "All cells together" in text


def test_an_audit_without_columns_and_source_is_shown():
    table = audit([5.0, 1, 4, 2, 3], [1.0, 5, 2, 4, 3]).prr
    findings = pd.DataFrame(columns=["pitfall", "title", "columns", "sentence", "lesson", "numbers"])
    panel = Panel("Title", pd.DataFrame(dict(n=range(120))), "Said.")
    found = Audit(5, table, ["u"], dict(one=panel), dict(q=2), findings, "Yes.", "No.", verdict=["So."])
    found.main = "quality"
    page = found.page()
    assert "No pitfall was found." in page and "The first 100 of 120 rows." in page and "<dd>q 2</dd>" in page
    assert str(found).endswith("May be quoted: Yes.\n\nMay not be quoted: No.")
    assert "No pitfall was found.\n\nMissing values: q 2" in str(found)


# In a browser
@pytest.mark.parametrize("file", ["many", "pilot"])
def test_the_page_in_a_browser(watched, many, tmp_path, file):
    "Nothing overflows at 1,280 and 390 px, nothing is loaded, and axe finds nothing serious in both schemes"
    pilot = root() / "data" / "examples" / "pilot.csv"
    if file == "pilot":
        words = "--quality human rouge nli --uncertainty msp entropy --document article".split()
        assert main(["audit", str(pilot), *words, "--html", str(tmp_path / "page.html")]) == 0
    else:
        (tmp_path / "page.html").write_text(many.page("Audit of many"))
    assert page_problems(watched, tmp_path / "page.html") == []
    for details in watched.page.query_selector_all("summary"):
        details.click()
    assert watched.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_print_shows_what_is_folded(watched, many, tmp_path):
    (tmp_path / "page.html").write_text(many.page("Audit of many"))
    page = watched.open(tmp_path / "page.html")
    shown = "document.querySelector('details table').checkVisibility()"
    assert not page.evaluate(shown)
    page.emulate_media(media="print")
    printed = page.evaluate(shown)
    page.emulate_media(media="screen")
    assert printed
