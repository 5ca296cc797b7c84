"""ICE's own scores: levels, ties, and a test that knows about documents."""

import numpy as np
import pandas as pd
import pytest

from uetrust.core.settings import mirror

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


def compared(**columns):
    about = dict(published_test="unieval", holm=0.01, sd_documents=[1.0, 2.0, 9.0], sd_subsets=1.0)
    return pd.DataFrame(about | columns)


def test_differences_are_claimed_by_subsets_and_firm_after_holm():
    from uetrust.papers.ice.released import significance_facts

    facts = significance_facts(
        compared(published_test=["undecided", "unieval", "ice_uniform"], holm=[0.049, 0.05, 0.9])
    )
    assert facts == (3, 2, 1, 2.0), "the ratio is the median"


def test_numbers_are_confirmed_at_the_third_digit_and_ranges_are_over_qualities():
    from uetrust.papers.ice.released import repair_facts

    printed = pd.DataFrame(dict(rho=[0.591, 0.433], tau=[0.424, 0.348]))
    after = pd.DataFrame(dict(spearman=[0.5914, 0.4325], kendall=[0.4246, 0.3]))
    before = after.assign(spearman=[0.2, 0.1])
    assert repair_facts(before, after, printed) == ((0.1, 0.2), (0.4325, 0.5914), 2, 4)


def test_cells_of_the_ledger_are_counted_by_status_and_by_how_they_agree():
    from uetrust.papers.ice.released import recomputed_cells
    from uetrust.papers.ledger.cells import CELL_STATUS

    cells = pd.DataFrame(dict(status=[CELL_STATUS[0]] * 2 + [CELL_STATUS[1]], how=["cut", "rounded", ""]))
    assert recomputed_cells(cells) == (2, 3, 1)
