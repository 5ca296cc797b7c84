"""The report as a small site, and the index of tables and figures behind it and behind `uetrust find`."""

import json
import re
import shlex
import shutil
from html.parser import HTMLParser

from tests.helpers.browser import page_problems
from tests.helpers.sites import COUNTS, EVIL
from uetrust.cli import cli  # noqa: F401 -- registers the subcommands
from uetrust.cli.command import APP
from uetrust.papers.deviations.register import deviation_counts, deviations
from uetrust.report.site.questions import SITE_QUESTIONS
from uetrust.report.site.write import (
    GROUPS,
    MENU,
    _grouped_chapters,
    _menu,
    _neighbours,
    bibtex,
    write_report,
)


# The pages
class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.images, self.scripts = [], [], [], 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs[k] for k in ("href", "src") if attrs.get(k)]
        self.images += [attrs] if tag == "img" else []
        self.scripts += tag == "script"


def test_code_and_emphasis_of_a_text_are_shown_as_such_and_nothing_else_is(site):
    evil = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;"
    assert f"0.6], by <code>make {evil}</code> with a_score_name." in (site / "human.html").read_text()
    for name in ("methods.html", "metrics.html"):
        shown = re.sub(r"<pre.*?</pre>", "", (site / name).read_text(), flags=re.S)
        assert "`" not in shown and shown.count("<code>") > 100
    metrics = (site / "metrics.html").read_text()
    assert "<em>the pier</em>" in metrics and "<code>Question</code>s about" in metrics
    search = json.loads((site / "index.js").read_text().partition("=")[2].strip().rstrip(";"))
    assert not [row for row in search if "`" in row[2] and row[1].startswith(("methods", "metrics"))]


def test_texts_of_data_sets_stay_text(site):
    for path in site.glob("*.html"):
        assert "alert(" not in path.read_text().replace("&lt;script&gt;alert(", ""), path.name
        assert Page(path).scripts == 1 + (path.name == "playground.html"), path.name
    assert (site / "human.html").read_text().count("&lt;script&gt;") >= 8
    assert "<script>" not in (site / "index.js").read_text()


def test_a_chapter_has_question_answer_figure_and_folded_details_in_this_order(site):
    html = (site / "human.html").read_text()
    order = [
        "<h1>",
        'class="question">Do uncertainty methods',
        'class="answer">The answer',
        "Looked at: texts",
    ]
    order += ["<figure", "<details><summary>What else", "An inventory", "<details><summary>A table", "Again:"]
    places = [html.index(text) for text in order]
    assert places == sorted(places)
    (image,) = Page(site / "human.html").images
    assert image["alt"].endswith(f"2 values, from 0.10 [0.00, 0.20] ({EVIL}) to 0.50 [0.40, 0.60] (b).")


def test_no_link_leaves_the_folder_and_none_is_dead(site, tmp_path):
    moved = shutil.copytree(site, tmp_path / "moved")  # As if it was zipped and mailed
    pages = {path.name: Page(path) for path in moved.glob("*.html")}
    for name, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), name
        for link in page.links:
            if re.match(r"https?:|data:,$", link):
                continue
            path, _, fragment = link.partition("#")
            target = (moved / (path or name)).resolve()
            assert target.is_relative_to(moved.resolve()) and target.is_file(), (name, link)
            assert not fragment or target.suffix != ".html" or fragment in pages[target.name].ids, (
                name,
                link,
            )


def test_what_a_page_loads_is_its_own(site):
    for path in site.glob("*.html"):
        loads = re.findall(r"<(?:script|img|link|source)[^>]*(?:src|href)=\"([^\"]*)\"", path.read_text())
        assert [load for load in loads if re.match(r"(https?:)?//", load)] == []
    assert (
        "url(" not in (site / "style.css").read_text() and "@import" not in (site / "style.css").read_text()
    )


def test_images_have_a_size_and_a_sentence(site):
    images = [image for path in site.glob("*.html") for image in Page(path).images]
    assert len(images) == 2
    for image in images:
        assert int(image["width"]) > 50 and int(image["height"]) > 50 and len(image["alt"]) > 30


def test_the_first_page_is_small_and_says_the_finding_with_its_interval(site):
    html = (site / "index.html").read_text()
    loaded = [html.encode(), *((site / name).read_bytes() for name in ("style.css", "site.js"))]
    loaded += [(site / image["src"]).read_bytes() for image in Page(site / "index.html").images]
    assert sum(map(len, loaded)) < 1_000_000 and html.count("<figure") == 1
    assert html.count("<h2>") >= len(SITE_QUESTIONS) and "class=answer>Not by itself: " in html
    assert re.search(r"Token F1 makes the length.*?\d\.\d+ \[\d\.\d+, \d\.\d+\]", html)


def test_the_first_page_says_what_prr_is(site):
    assert 'href="glossary.html#prr">prediction-rejection ratio</a>' in (site / "index.html").read_text()
    assert "prr" in Page(site / "glossary.html").ids


def test_every_page_of_the_menu_is_there_and_every_paper_has_all_its_rows(site):
    shown = _menu(docs={})
    assert len(shown) == len({name for _, name in MENU}) - 2  # Lessons and Documentation are not there
    for address, _ in shown:
        assert (site / address.partition("#")[0]).exists()
    for paper, counts in COUNTS.items():
        exhibits, _, register = (site / f"paper-{paper}.html").read_text().partition('id="deviations"')
        assert exhibits.count('<tr class="item"') == sum(counts)
        assert register.count('<tr class="item"') == len(deviations(paper))
        assert f"{deviation_counts().at[paper, 'named deviation']} named deviations" in register


def test_every_command_of_the_quick_starts_is_one_that_the_parser_takes(site):
    html = (site / "start.html").read_text()
    commands = re.findall(r"(uetrust [^<\n]+)</(?:pre|code)>", html)
    assert len(commands) >= 8
    for line in commands:
        APP.parse_args(shlex.split(line)[1:], exit_on_error=False, print_error=False)


def test_the_page_says_how_to_cite(site):
    assert f">{bibtex()}</pre>" in (site / "start.html").read_text()


def test_the_same_report_twice_is_the_same(site, tmp_path):
    out = site.parent
    before = {path.name: path.read_bytes() for path in site.iterdir() if path.is_file()}
    write_report("smoke", out)
    assert {path.name: path.read_bytes() for path in site.iterdir() if path.is_file()} == before


def test_a_report_links_the_pages_of_the_documentation_that_are_there(site, tmp_path):
    names = (
        "experiments/people/01_human.html",
        "lessons/1_basics/01_what_is_prr.html",
        "your_own_outputs.html",
    )
    shown = dict(
        title="T", body="<p>Text</p>", up=None, before=None, after=None, entries=[["T", "t", "", "", "", 0]]
    )
    write_report("smoke", site.parent, tmp_path / "site", {name: shown for name in names})
    html = (tmp_path / "site" / "human.html").read_text()
    assert (
        f'href="{names[0]}"' in html and "lessons.html" not in html and 'href="your_own_outputs.html"' in html
    )
    assert f'href="{names[1]}"' in (tmp_path / "site" / "index.html").read_text()
    assert 'href="../../style.css"' in (tmp_path / "site" / names[0]).read_text()
    assert '["T", "t"' in (tmp_path / "site" / "index.js").read_text()
    assert "make docs" not in (tmp_path / "site" / "index.html").read_text()
    assert "make docs" in (site / "index.html").read_text() and not (site / "notebook.css").exists()


def test_a_chapter_leads_to_those_before_and_after_it_in_its_group():
    names = dict(a="people", x="banks", b="people", c="people")
    chapters = [dict(id=name, title=name.upper(), group=group) for name, group in names.items()]
    found = {chapter["id"]: chapter for chapter in _neighbours(_grouped_chapters(chapters))}
    assert list(found) == ["a", "b", "c", "x"]
    turns = {name: (chapter["before"], chapter["after"]) for name, chapter in found.items()}
    a, b, c = (("a", "A"), ("b", "B"), ("c", "C"))
    assert turns == dict(a=(None, b), b=(a, c), c=(b, None), x=(None, None))
    assert [found[name]["group_title"] for name in "ax"] == [GROUPS["people"], GROUPS["banks"]]


def test_a_long_table_is_searched_on_its_page(site, watched):
    "All rows are there; what is typed leaves the rows that hold it. A short table has no field."
    page = watched.open(site / "human.html")
    assert page.locator("details .filter").count() == 1
    page.locator("summary", has_text="A long table").click()
    page.locator("details .filter input").fill("TEXT3")
    shown = page.locator("details .filtered tr.item:visible").all_inner_texts()
    assert [row.split()[0] for row in shown] == ["text3", *(f"text{i}" for i in range(30, 40))]
    assert page.locator("details .filtered output").inner_text() == "11 of 40" and watched.wrong == []


def test_chapters_of_one_kind_share_a_page_and_the_address_keeps_the_choice(tmp_path, watched):
    "Without a choice the first is shown; the list marks the one that is shown"
    from uetrust.report.chapters import save_page

    for name in ("tiny-bart", "tiny-t5"):
        save_page(f"cross--bulletin--{name}", tmp_path, f"Title {name}", [f"Answer {name}."])
    write_report("demo", tmp_path)
    folder = tmp_path / "report"
    assert not list(folder.glob("cross--bulletin--*")) and 'href="cross--bulletin.html"' in (
        (folder / "index.html").read_text()
    )
    index = json.loads((folder / "index.js").read_text().removeprefix("const INDEX = ").rstrip(";\n"))
    assert ["Title tiny-t5", "cross--bulletin.html#tiny-t5"] in [entry[:2] for entry in index]
    assert 'href="cross--bulletin.html#tiny-bart"' in (folder / "paper-he2024.html").read_text()
    page = watched.open(folder / "cross--bulletin.html")
    for name, other in (("tiny-bart", "tiny-t5"), ("tiny-t5", "tiny-bart")):
        assert page.locator(f"#{name}").is_visible() and not page.locator(f"#{other}").is_visible()
        assert page.locator(".pick [aria-current]").all_inner_texts() == [name]
        page.locator(".pick a", has_text="tiny-t5").click()
    page.goto("about:blank")
    page.goto((folder / "cross--bulletin.html").as_uri() + "#tiny-t5")
    assert page.locator(".pick [aria-current]").all_inner_texts() == ["tiny-t5"]
    assert page_problems(watched, folder / "cross--bulletin.html") == []


def test_the_index_is_fetched_when_somebody_searches(site, watched):
    page = watched.open(site / "index.html")
    assert not any("index.js" in name for name in watched.sizes)
    page.locator("#q").fill("figure 23")
    page.locator("#found a").first.wait_for()
    assert page.locator("#found a").first.get_attribute("href").endswith("paper-he2024.html#figure23")
    assert watched.wrong == []
