"""ICE's own scores: levels, ties, and a test that knows about documents."""

import os
import subprocess
import sys

import nbformat
import numpy as np
import pytest

from uetrust.core.settings import mirror, root

needs_data = pytest.mark.skipif(
    mirror() is None or not (mirror() / "ice" / "data_sms.json").exists(),
    reason="UETRUST_MIRROR has no ice/data_sms.json",
)


@pytest.fixture(scope="module")
def df():
    from uetrust.data.loaders import ice, realign_unieval

    return realign_unieval(ice())


@needs_data
def test_levels_are_the_recorded_ones(df, oracle):
    from uetrust.papers.ice.released import correlations_by_level

    want, t = (
        oracle("evaluation.json")["ice_unieval_levels"]["results"],
        correlations_by_level(df, ["ice_uniform", "ice_stratified"]).set_index(["metric", "quality", "coef"]),
    )
    for (m, q, c), r in t.iterrows():
        assert (r["pooled"], r["per_document"]) == pytest.approx(
            (want[m]["sample"][q][c], want[m]["summary"][q][c]), abs=1e-6
        )
        assert r["skipped"] == want[m]["documents_skipped"][q]


@needs_data
def test_distinct_scores_and_means_of_figure_2(df):
    from uetrust.papers.ice.released import score_histograms, score_spreads

    s = score_spreads(df).set_index(["metric", "quality"])
    assert s.loc["ice_uniform", "distinct"].tolist() == [17, 4, 14, 9]
    assert [s.loc[m, "mean"].round(3).tolist() for m in ("human", "ice_uniform", "ice_stratified")] == [
        [0.605, 0.916, 0.918, 0.695],
        [0.834, 0.973, 0.936, 0.755],
        [0.579, 0.590, 0.753, 0.708],
    ]
    assert s.loc[("ice_uniform", "consistency"), "share"] == 1326 / 1536
    assert np.allclose(score_histograms(df).groupby(["metric", "quality"])["share"].sum(), 1)


@needs_data
def test_appendix_e_as_published_and_by_documents(df):
    "The published verdicts come out on realigned scores; four of eight survive documents uncorrected"
    from uetrust.papers.ice.released import significance_tests

    e = significance_tests(df, subsets=400, draws=300, seed=1).set_index(["coef", "quality"])
    assert e.loc["kendall", "published_test"].to_dict() == dict(
        coherence="unieval", consistency="ice_uniform", fluency="unieval", relevance="ice_uniform"
    )
    assert e.loc["spearman", "published_test"].to_dict() == dict(
        coherence="unieval", consistency="ice_uniform", fluency="unieval", relevance="undecided"
    )
    assert e["difference"].round(3).tolist() == [-0.114, -0.035, 0.054, 0.119, -0.079, -0.021, -0.005, 0.041]
    assert (e["sd_documents"] > 1.5 * e["sd_subsets"]).all()
    assert set(e.index[e["p"] < 0.02]) == {
        ("spearman", "coherence"),
        ("spearman", "fluency"),
        ("kendall", "consistency"),
    }
    assert (e["holm"] >= e["p"]).all()


def test_an_experiment_without_its_data_ends_early_and_the_report_says_so(tmp_path):
    "The real notebook in a checkout of its own: the run succeeds, and notebook and page name what is missing"
    for n in ("nbs", "uetrust", "data", "settings.ini"):
        (tmp_path / n).symlink_to(root() / n)
    env = os.environ | dict(
        UETRUST_MIRROR="/nonexistent", UETRUST_OFFLINE="1", UETRUST_CACHE=str(tmp_path / "cache")
    )
    run = [sys.executable, "-c", "import sys; from uetrust.cli.cli import main; sys.exit(main(sys.argv[1:]))"]
    out = tmp_path / "runs" / "smoke" / "notebooks" / "wrong_documents.ipynb"
    r = subprocess.run(
        [*run, "run", "nbs/experiments/ice/02_wrong_documents.ipynb", str(out), "profile=smoke"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "ended early: data not at hand: ice/data_sms.json" in r.stdout
    cells = [c for c in nbformat.read(out, 4).cells if c.cell_type == "code"]
    said = [o.text for c in cells for o in c.outputs if o.output_type == "stream"]
    assert (
        len(said) == 1
        and said[0].startswith("data not at hand: ice/data_sms.json")
        and "were not run" in said[0]
    )
    assert not any(o.output_type == "error" for c in cells for o in c.outputs)
    from uetrust.report.page import missing_files
    from uetrust.report.site.write import write_report

    folder = out.parents[1]
    assert "pages/wrong_documents.json" not in missing_files("smoke", folder)
    write_report("smoke", folder)
    page = (folder / "report" / "run.html").read_text()
    assert "Public data that are not at hand" in page and "data not at hand: ice/data_sms.json" in page


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
