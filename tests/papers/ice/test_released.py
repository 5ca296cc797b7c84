"""ICE's own scores: levels, ties, and a test that knows about documents."""

import numpy as np
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
