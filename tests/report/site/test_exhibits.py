"""The index of tables and figures: every one of a paper stands there once, and words find it."""

import json
import re
import shutil
import subprocess

import pytest

from tests.helpers.sites import COUNTS
from uetrust.core.settings import root
from uetrust.papers.he2024.published import correlation_figures
from uetrust.papers.ledger.cells import PAPER_PREFIXES, cell_ledger
from uetrust.report.site import exhibits as index

KEYS = dict(uets="he2024", schroedinger="threshold") | {p: p for p in ("ice", "fflm", "narcissism")}


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
