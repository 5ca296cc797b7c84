"""Files of a run: complete, identical on every run, and equal to the numbers they show."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

from tests.helpers.pages import page_text
from uetrust.core.settings import profile, root
from uetrust.evaluation.agreement import agreement
from uetrust.papers.he2024.published import (
    correlation_figures,
    figure_table,
    figure_variants,
    normal_null_sd,
    printed_tables,
)
from uetrust.papers.ledger.cells import cell_ledger
from uetrust.papers.people.overview import overview_sentences, stored_overview
from uetrust.report.chapters import (
    claim_standing,
    figure_agreement,
    save_agreement,
    save_csv,
    save_page,
    save_table,
    setting_figures,
    table_cells,
    table_rank_intervals,
    table_with_means,
)
from uetrust.report.page import expected_files
from uetrust.report.site.questions import paper_sentences
from uetrust.report.site.write import write_report


def digest(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(Path(folder).iterdir())}


def test_every_table_and_figure_of_the_paper_is_expected_once():
    e = expected_files("demo")
    assert e["tables"] == [f"T{i}" for i in range(3, 12)] and list(e["figures"]) == list(range(3, 42))
    from_settings = [f for t in e["tables"] for f, _ in setting_figures(t)]
    assert sorted(set(from_settings)) == list(range(3, 42))
    assert (
        sum(map(len, e["figures"].values()))
        == len(from_settings)
        == sum(len(figure_variants(f)) for f in correlation_figures().index)
    )


@pytest.mark.parametrize("hashseed", ["1", "2"])
def test_files_do_not_depend_on_the_process(tmp_path, hashseed):
    code = (
        "import sys; from uetrust.report.chapters import *; save_agreement(10, sys.argv[1]); "
        "save_agreement(8, sys.argv[1], 'alternative'); save_table('T9', sys.argv[1])"
    )
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "other")],
        check=True,
        cwd=root(),
        env={**__import__("os").environ, "PYTHONHASHSEED": hashseed},
    )
    here = tmp_path / "here"
    save_agreement(10, here)
    save_agreement(8, here, "alternative")
    save_table("T9", here)
    assert digest(here) == digest(tmp_path / "other")


def test_figure_files_hold_the_numbers(tmp_path):
    save_agreement(8, tmp_path, "alternative")
    got, f = pd.read_csv(tmp_path / "fig08_all.csv"), figure_table(8, "alternative")
    want = agreement(f.table, f.between)
    assert list(got) == [*want, "p_classical", "null_mean", "null_lo", "null_hi"]
    pd.testing.assert_frame_equal(
        got[["label_a", "label_b", "rho", "n"]], want.iloc[:, :4], check_dtype=False
    )
    np.testing.assert_allclose(got["p_classical"], want["p"], rtol=1e-9)
    null = pd.read_csv(tmp_path / "fig08_all_null.csv")
    assert null["significant"].tolist() == [(want["p"] < 0.05).sum()] and null["draws"].tolist() == [999]
    save_agreement(5, tmp_path)
    got, f = pd.read_csv(tmp_path / "fig05.csv"), figure_table(5)
    pd.testing.assert_frame_equal(got, agreement(f.table, f.between), rtol=1e-9, check_dtype=False)
    assert not (tmp_path / "fig05_null.csv").exists(), "metrics over methods keep the classical p"


def test_a_figure_has_the_numbers_that_a_reader_s_own_call_gives():
    "Nothing is chosen for a figure, neither its number of shuffled tables nor their seed."
    from uetrust.evaluation.shuffled import shuffled_agreement

    figure = figure_table(40)
    found = figure_agreement(figure.table, figure.between, "error types")
    expected = shuffled_agreement(figure.table, figure.between)
    pd.testing.assert_frame_equal(found.pairs, expected.pairs)
    assert found.null == expected.count and found.null.draws == 999


def test_table_files_hold_the_printed_numbers(tmp_path):
    for t in ("T3", "T11"):
        save_table(t, tmp_path)
        got = pd.read_csv(tmp_path / f"table{int(t[1:]):02d}.csv", index_col=0)
        np.testing.assert_array_equal(
            got.loc[printed_tables()[t].index, printed_tables()[t].columns], printed_tables()[t]
        )
    assert got.columns[-1] == "Row Mean" and table_with_means("T3").index[-1] == "Col Mean"


@pytest.mark.parametrize("t,n", [("T3", 1906), ("T8", 11334), ("T9", 100)])
def test_band_of_chance(t, n):
    c = table_cells(t)
    assert set(c["null_sd"]) == {normal_null_sd(n)}
    assert (c["inside"] == (c["value"].abs() < 1.96 * normal_null_sd(n))).all() and 0 < c["inside"].mean() < 1


def test_rank_intervals_hold_the_rank_and_widen_with_shared_errors():
    r = table_rank_intervals("T3")
    assert (r["rank_lo"] <= r["rank"]).all() and (r["rank"] <= r["rank_hi"]).all()
    width = (r["rank_hi"] - r["rank_lo"]).groupby(r["judged_by"]).sum()
    assert width["mean, errors shared by all rows"] >= width["mean, errors independent between rows"]
    pd.testing.assert_frame_equal(r, table_rank_intervals("T3"))


def test_standing_rests_on_joint_and_equivalence_tests():
    from uetrust.papers.he2024.claims import claim_ledger

    led = claim_ledger()
    s = claim_standing(led)
    assert s.isin(["partly", "fails", "not decidable"]).sum() == (led["verdict"] != "holds").sum()
    about = led["n_obs"].notna()
    assert (led.loc[(s == "supported") & about, "joint_p"] < 0.05).all()
    assert (led.loc[s == "supported", "stability"] >= 0.5).all()
    weak = led["weak_cells"] == led["cells"]
    assert not (weak & (s == "supported")).any() and (weak & (s == "never testable")).any()
    assert (led.loc[(s == "never testable") & ~weak, "joint_p_least"] >= 0.05).all()
    by_id = s.set_axis(led["id"])
    assert by_id["4.2-09"] == "supported" and by_id["4.2-12"] == "fragile"
    assert by_id["C1.6-02"] == "supported", "four judges of four methods, jointly"
    assert by_id["4.2-06"] == "never testable", "31 metrics cannot show |rho| < 0.3"


def test_report_escapes_text_and_needs_no_other_file(tmp_path):
    (tmp_path / "claims").mkdir(parents=True)
    for t in ("T9", "T10", "T11"):
        save_table(t, tmp_path / "tables")
    for f in (39, 40, 41):
        save_agreement(f, tmp_path / "figures")
    for n in ("verdicts", "point"):
        (tmp_path / "claims" / f"{n}.png").write_bytes((tmp_path / "figures" / "fig40.png").read_bytes())
    from uetrust.papers.he2024.claims import claim_ledger

    led = claim_ledger(draws=5)
    led.loc[0, "claim"] = '<script>alert(1)</script> & "quoted"'
    save_csv(led.assign(standing=claim_standing(led)), tmp_path / "claims" / "claims.csv")
    for n in (
        *profile("smoke")["studies"].split()[2:],
        *(
            f"{what}--{b}"
            for b in profile("smoke")["banks"].split()
            for what in profile("smoke")["chapters"].split()
        ),
    ):
        save_page(n, tmp_path, n, ["Nothing was run."])
    assert write_report("smoke", tmp_path) == []
    html = (tmp_path / "report" / "claims.html").read_text()
    assert (
        "<script>alert" not in html and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#34;quoted&#34;" in html
    )
    assert "incomplete" not in (tmp_path / "report" / "index.html").read_text()
    assert html.count("<figure") == 2 and html.count('<tr class="item"') == 154
    assert (tmp_path / "report" / "table11.html").read_text().count("<figure") == 2


def test_the_summary_counts_what_is_in_the_files(tmp_path):
    (tmp_path / "tables").mkdir()
    (tmp_path / "claims").mkdir()
    (tmp_path / "notebooks").mkdir()
    (bank,) = profile("smoke")["banks"].split()
    save_csv(pd.DataFrame(dict(name=["msp", "mte"])), tmp_path / "tables" / f"methods--{bank}_scores.csv")
    save_csv(pd.DataFrame(dict(name=["rouge_l"])), tmp_path / "tables" / f"quality--{bank}_scores.csv")
    save_csv(
        pd.DataFrame(dict(method=["msp", "mte", "msp"], metric=["truth", "truth", "rouge_l"])),
        tmp_path / "tables" / f"cross--{bank}_prr.csv",
    )
    claims = pd.DataFrame(dict(verdict=["holds", "fails", "holds"], standing=["fragile", "fails", "fact"]))
    save_csv(claims, tmp_path / "claims" / "claims.csv")
    for n, took in (("a", dict(papermill=dict(duration=2.04))), ("b", {})):
        (tmp_path / "notebooks" / f"{n}.ipynb").write_text(json.dumps(dict(cells=[], metadata=took)))
    missing = write_report("smoke", tmp_path)
    s = json.loads((tmp_path / "report" / "summary.json").read_text())
    assert s == dict(
        profile="smoke",
        generators=[bank],
        methods=2,
        metrics=1,
        cells=3,
        claims=dict(holds=2, fails=1),
        published={},
        figures=0,
        seconds=dict(a=2.0),
        missing=missing,
    )


@pytest.fixture
def opened(tmp_path):
    "A folder of the demo that holds the chapter of the first figure and nothing else."
    from matplotlib.pyplot import subplots

    from uetrust.report.plots import save_figure

    save_figure(subplots(figsize=(1, 1))[0], tmp_path / "figures" / "people_overview")
    sentences = list(overview_sentences(stored_overview()).values())
    save_page("people_overview", tmp_path, "Outputs", sentences, dict(people_overview="Four panels"))
    return tmp_path


def test_report_opens_with_four_answers_and_then_with_people(opened):
    write_report("demo", opened)
    html = (opened / "report" / "index.html").read_text()
    order = ["Can PRR be trusted?", "Not by itself", "Which metric may stand in", "None fully"]
    order += [
        "How many texts",
        "Hundreds to choose a method well",
        "What holds of the papers?",
        "has not asked",
    ]
    order += ['alt="Four panels', *(escape(text) for text in overview_sentences(stored_overview()).values())]
    order += ["Limits. Answers: short answers", 'id="start"', 'id="chapters"']
    places = [html.index(text) for text in order]
    assert places == sorted(places)


def test_report_without_its_first_figure_says_so_and_goes_on(opened):
    (opened / "pages" / "people_overview.json").unlink()
    note = opened / "notebooks" / "people_overview.missing.txt"
    note.parent.mkdir()
    note.write_text("data not at hand: mlqe-pe/da/test/en-de-test.tar.gz")
    write_report("demo", opened)
    html = (opened / "report" / "index.html").read_text()
    assert "Not shown: data not at hand: mlqe-pe" in html and "Four panels" not in html
    assert all(escape(text) in html for text in overview_sentences(stored_overview()).values())


def test_a_profile_without_the_study_opens_with_the_stored_numbers(tmp_path):
    write_report("smoke", tmp_path)
    html = (tmp_path / "report" / "index.html").read_text()
    assert html.count('class="opening"') == 1 and "Not shown" not in html
    assert all(escape(text) in html for text in overview_sentences(stored_overview()).values())


def test_settings_name_the_tables_of_the_paper():
    assert len(profile("demo")["printed_pairs"].split()) == 7
    with pytest.raises(LookupError, match="no profile 'full'"):
        profile("full")


def test_the_page_of_findings_says_what_the_ledger_says():
    from uetrust.evaluation.agreement import smallest_attainable_p
    from uetrust.papers.he2024.claims import claim_ledger, correlation_evidence

    led, text = claim_ledger(draws=0), page_text("findings")
    n = led["verdict"].value_counts()
    rho = led[(led["verdict"] == "holds") & (led["correlation_cells"].fillna(0) > 0)]
    assert (
        f"of {len(led)} checkable sentences, {n['holds']} hold, {n['partly']} hold in part, "
        f"{n['fails']} fail and {n['not decidable']} cannot be decided" in text
    )
    alone = (rho["significant_cells"] == 0).sum()
    assert f"{alone} of the {len(rho)} that hold and speak of correlations name none" in text
    evidence = correlation_evidence(led)
    jointly = evidence["... of these, joint p below 0.05, though no correlation is significant"]
    weak = evidence["no significant correlation, and claim only weak or absent ones"]
    shown = led["equivalence"][rho.index[rho["weak_cells"] == rho["correlation_cells"]]] == "shown"
    assert f"Jointly {jointly} of these {alone} are significant" in text
    assert f"{weak} claim that a correlation is weak or absent" in text
    assert "shows none of them" in text and not shown.any()
    assert f"p = {smallest_attainable_p(4):.3f}" in text


def test_the_readme_has_two_commands_of_make():
    assert re.findall(r"^make (\w+)$", (root() / "README.md").read_text(), re.M) == ["reproduce", "test"]


def test_no_text_says_that_the_paper_is_recomputed_from_data():
    "None of the printed numbers of He et al. can be: the page of findings says so, with their number"

    led = cell_ledger("He et al.")
    led = led[led["paper"] == "He et al."]
    recomputed = led["status"].isin(["recomputed, equal", "recomputed, different"]).sum()
    said = page_text("findings")
    assert recomputed == 0 and f"of the {len(led):,} numbers of He et al. none can be recomputed" in said
    first = paper_sentences(None, led)[-1]
    assert "None of the numbers of He et al. can be recomputed from data" in first
    for path in ("README.md", "nbs/index.ipynb", "nbs/findings.ipynb", "CITATION.cff", "pyproject.toml"):
        text = (root() / path).read_text()
        assert not re.search(r"recomputes (the tables|what such papers print)", text), path


def test_a_chapter_shows_what_its_file_says_and_escapes_it(tmp_path):
    import pandas as pd

    from uetrust.report.chapters import save_csv, save_page
    from uetrust.report.site.pieces import Site, chapter_page
    from uetrust.report.site.write import write_report

    save_csv(
        pd.DataFrame({"name": ["<b>x</b>"], "value": [0.123456], "n": [1536], "ok": [True]}),
        tmp_path / "tables" / "t.csv",
    )
    save_page("wrong_documents", tmp_path, "A <i>title</i>", ["First & last."], tables={"t": "one table"})
    site = Site(tmp_path, tmp_path / "report")
    page = chapter_page(site, "wrong_documents", "smoke")
    site.finish()
    assert page["tables"][0]["rows"] == [
        [("<b>x</b>", True), ("0.1235", False), ("1,536", False), ("yes", True)]
    ]
    write_report("smoke", tmp_path)
    html = (tmp_path / "report" / "wrong_documents.html").read_text()
    assert (
        "&lt;b&gt;x&lt;/b&gt;" in html
        and "A &lt;i&gt;title&lt;/i&gt;" in html
        and "First &amp; last." in html
        and "<b>x</b>" not in html
    )
