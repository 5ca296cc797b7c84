"""The report as a small site, and the index of tables and figures behind it and behind `uetrust find`."""

import json
import re
import shlex
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from uetrust.cli.command import APP
from uetrust.core.settings import root
from uetrust.papers.he2024.published import correlation_figures
from uetrust.papers.ledger.cells import PAPER_PREFIXES, cell_ledger
from uetrust.report.plots import save_figure
from uetrust.report.site import exhibits as index
from uetrust.report.site.gallery import gallery
from uetrust.report.site.pieces import figure_finding, heat_table
from uetrust.report.site.write import MENU, site_index, write_report

KEYS = dict(uets="he2024", schroedinger="threshold") | {p: p for p in ("ice", "fflm", "narcissism")}
COUNTS = dict(he2024=(11, 41), ice=(2, 4), fflm=(13, 3), narcissism=(5, 6), threshold=(5, 4))
EVIL = '<script>alert("x")</script>'


# The index
@pytest.mark.parametrize("paper", COUNTS)
def test_every_table_and_figure_of_a_paper_is_there_once(paper):
    rows = index.exhibits(paper)
    for kind, count in zip(("table", "figure"), COUNTS[paper]):
        assert sorted(rows.loc[rows["kind"] == kind, "number"]) == list(range(1, count + 1))


def test_the_index_agrees_with_the_ledger_and_with_the_registry_of_figures():
    "What can be recomputed says so, and nothing else does; the correlation figures stand on their tables."
    rows, ledger = index.exhibits().set_index(["paper", "kind", "number"]), cell_ledger()
    for (paper, table), cells in ledger.groupby(["paper", "table"]):
        row = rows.loc[(KEYS[PAPER_PREFIXES[paper]], "table", table)]
        recomputed = cells["status"].str.startswith("recomputed").any()
        assert (row["status"] == "recomputed from public data") == recomputed, row
        all_unknown = (cells["status"] == "not at hand").all()
        assert (row["status"] == "not at hand") <= all_unknown, row
        assert row["status"] != "explained here"
    for number, figure in correlation_figures().iterrows():
        row = rows.loc[("he2024", "figure", number)]
        assert row["chapter"] == f"table{figure['source_table']:02d}" and f"fig{number:02d}" in row["files"]
    assert set(rows["status"]) == set(index.EXHIBIT_STATUS)


def test_what_needs_a_model_names_it_and_what_is_at_hand_has_a_page():
    for row in index.exhibits().itertuples():
        assert (root() / row.notebook).exists(), row
        assert row.status != "not at hand" or (row.needs and (row.live_chapter or row.chapter)), row
        assert bool(row.live_chapter) == bool(row.live_notebook) == bool(row.live_files), row
        for path in (row.files + " " + row.live_files).split():
            assert re.fullmatch(r"(tables|figures)/[\w-]+\.(csv|svg)", path), row


@pytest.mark.parametrize(
    "words,first,count",
    [
        ("figure 23", ("he2024", "figure", 23), 1),
        ("Fig. 23", ("he2024", "figure", 23), 1),
        ("table 4 of fflm", ("fflm", "table", 4), 1),
        ("Schrödinger's table 3", ("threshold", "table", 3), 1),
        ("ablations", ("fflm", "table", 4), 2),
        ("opitz figure", ("threshold", "figure", 1), 4),
    ],
)
def test_finding(words, first, count):
    found = index.find_exhibits(words)
    assert len(found) == count and tuple(found.loc[0, ["paper", "kind", "number"]]) == first


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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    "A report of a run that holds one chapter, whose texts are hostile, and the ledger"
    from matplotlib.pyplot import subplots

    from uetrust.report.chapters import save_correlations  # noqa: F401
    from uetrust.report.pages import Page as Chapter

    out = tmp_path_factory.mktemp("run")
    page = Chapter("human", "smoke", str(out))
    page.opening(f"texts {EVIL}, n = 3")
    page.say(f"An inventory {EVIL}.")
    page.answer(f"The answer {EVIL}, 0.5 [0.4, 0.6], by `make {EVIL}` with a_score_name.")
    rows = pd.DataFrame(dict(label=[EVIL, "b"], value=[0.1, 0.5], lo=[0, 0.4], hi=[0.2, 0.6]))
    page.figure(subplots(figsize=(12, 3))[0], caption=f"A figure {EVIL}", numbers=rows)
    page.table(rows, caption=f"A table {EVIL}")
    page.close(f"A title {EVIL}")
    (out / "notebooks").mkdir()
    (out / "notebooks" / "human.ipynb").write_text(json.dumps(dict(cells=[], metadata={})))
    write_report("smoke", out)
    return out / "report"


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
        assert Page(path).scripts == 2 or path.name == "playground.html", path.name
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
    loaded = [html.encode(), *((site / name).read_bytes() for name in ("style.css", "site.js", "index.js"))]
    loaded += [(site / image["src"]).read_bytes() for image in Page(site / "index.html").images]
    assert sum(map(len, loaded)) < 1_000_000 and html.count("<figure") == 1
    assert re.search(r'class="answer">Studies of 100 translations.*?\d\.\d+ \[\d\.\d+, \d\.\d+\]', html)


def test_the_first_page_says_what_prr_is_and_the_playground_leads_back(site):
    assert 'href="glossary.html#prr">prediction-rejection ratio</a>' in (site / "index.html").read_text()
    assert "prr" in Page(site / "glossary.html").ids
    assert Page(site / "playground.html").links.count("index.html") == 1


@pytest.mark.parametrize("layout", [None, "tight", "constrained"])
def test_a_figure_is_not_cut_at_its_edges(tmp_path, layout):
    "Long labels on all sides, which a layout moves before it draws"
    from matplotlib.pyplot import subplots

    fig, axes = subplots(1, 2, figsize=(6, 2), layout=layout)
    for ax in axes:
        ax.set(ylabel="a label that is longer\nthan its axis is high", xlabel="x", yticks=[-1000.25, 0])
    fig.suptitle("Above\nthe panels")
    fig.legend(
        *[[axes[0].plot([0, 1])[0]], ["one"]], loc="outside lower center" if layout else "lower center"
    )
    save_figure(fig, tmp_path / "figure")
    ink = np.asarray(Image.open(tmp_path / "figure.png").convert("L")) < 250
    assert ink.any() and not any(edge.any() for edge in (ink[0], ink[-1], ink[:, 0], ink[:, -1]))


def test_every_page_of_the_menu_is_there_and_every_paper_has_all_its_rows(site):
    for address, _ in MENU:
        assert (site / address.partition("#")[0]).exists()
    for paper, counts in COUNTS.items():
        assert (site / f"paper-{paper}.html").read_text().count('<tr class="item"') == sum(counts)


def test_the_search_field_has_the_index_of_find(site):
    entries = json.loads((site / "index.js").read_text().removeprefix("const INDEX = ").rstrip(";\n"))
    named = [entry for entry in entries if entry[4]]
    assert len(named) == len(index.exhibits()) == sum(map(sum, COUNTS.values()))
    assert ["Figure 23 of He et al. 2024", "paper-he2024.html#figure23"] in [entry[:2] for entry in named]
    assert entries == site_index([], dict(methods=gallery("ue"), metrics=gallery("nlg")))[: len(named)] + [
        entry for entry in entries if not entry[4]
    ]


@pytest.mark.skipif(not shutil.which("node"), reason="no node to run the page's script with")
@pytest.mark.parametrize("words", ["figure 23", "table 4 of fflm", "ablations", "Fig. 2", "opitz figure"])
def test_the_search_field_finds_what_find_finds(site, words):
    script = (site / "site.js").read_text()
    part = (
        script[: script.index("// Enlarged")]
        + script[script.index("function answers") : script.index("const field")]
    )
    call = f"console.log(JSON.stringify(answers({json.dumps(words)}).filter(e => e[4]).map(e => e[0])))"
    program = (site / "index.js").read_text() + part + call
    shown = json.loads(
        subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True).stdout
    )
    found = [index.exhibit_name(row) for row in index.find_exhibits(words).itertuples()]
    assert set(found) <= set(shown)
    assert shown[: len(found)] == found or not re.search(r"\d", words)


def test_every_command_of_the_quick_starts_is_one_that_the_parser_takes(site):
    html = (site / "start.html").read_text()
    commands = re.findall(r"(uetrust [^<\n]+)</(?:pre|code)>", html)
    assert len(commands) >= 8
    for line in commands:
        APP.parse_args(shlex.split(line)[1:], exit_on_error=False, print_error=False)


def test_the_same_report_twice_is_the_same(site, tmp_path):
    out = site.parent
    before = {path.name: path.read_bytes() for path in site.iterdir() if path.is_file()}
    write_report("smoke", out)
    assert {path.name: path.read_bytes() for path in site.iterdir() if path.is_file()} == before


def test_a_report_inside_the_documentation_links_to_it(site, tmp_path):
    write_report("smoke", site.parent, tmp_path / "results", "..")
    html = (tmp_path / "results" / "human.html").read_text()
    assert 'href="../experiments/people/01_human.html"' in html and 'href="../index.html"' in html
    assert "make docs" not in (tmp_path / "results" / "index.html").read_text()
    assert "make docs" in (site / "index.html").read_text()


def test_a_large_heat_map_is_cut_to_what_is_largest():
    wide = pd.DataFrame(0.1, [f"r{i}" for i in range(30)], [f"c{i}" for i in range(20)])
    wide.loc["r17"], wide["c3"] = -0.9, 0.8
    shown = heat_table(wide)
    assert shown["rows"][0][0] == "r17" and shown["columns"][0] == "c3" and shown["of"] == (30, 20)
    assert heat_table(wide.iloc[:8, :8]) is None


def test_a_card_shows_what_was_measured_and_how_to_compute_it():
    cards = {card["name"]: card for card in gallery("ue") + gallery("nlg")}
    assert {"formula", "cite", "pitfall", "code"} <= {key for key, value in cards["msp"].items() if value}
    assert any(line.startswith("Bulletins, tiny-bart: PRR") for line in cards["msp"]["measured"])
    assert any("language pairs" in line for line in cards["msp"]["measured"])
    assert any("loses" in line and "[" in line for line in cards["chrf"]["measured"])
    assert any(line.startswith("Speed") for line in cards["rouge_l"]["measured"])


def test_the_sentence_of_a_figure_needs_numbers():
    assert figure_finding(pd.DataFrame(dict(a=["x"], b=["y"]))) == ""
    assert Path(root() / "data" / "glossary.csv").exists()
