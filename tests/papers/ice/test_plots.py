"""Figures of ICE: a rising curve, and a page without a single score."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.helpers import endpoints as te
from tests.helpers.ice import SMALL, study
from uetrust.papers.ice import live as st
from uetrust.papers.ice import plots
from uetrust.statistics.judges import request_completions


# Together
def test_a_judge_that_knows_more_with_more_examples_gives_a_rising_curve(pool, tmp_path, knowing):
    with te.server() as (url, _):
        e = te.endpoint(url, chat=False)
        plan, requests = study(pool, e)
        t = st.scores_of_replies(plan, request_completions(e, requests, tmp_path / "r", progress=False))
    corr = st.ice_correlations(t, pool, 50)
    curve = st.by_example_count(corr).pivot(index="k", columns="dim", values="value").mean(axis=1)
    assert (
        curve[0] < curve[1] < curve[4] and curve[4] > 0.6 and not t["cut"].any() and t["tokens"].notna().all()
    )
    said = plots.ice_sentences(t, corr, "Somebody", "the truth")
    assert (
        said[0].startswith(f"Somebody was asked {len(plan)} questions: {len(plan)} (100%) have a score")
        and any("differ by up to" in p for p in said)
        and not any("Refused" in p for p in said)
    )


def test_a_page_without_a_single_score_says_so(pool):
    plan = st.ice_questions(pool, SMALL)
    t = st.scores_of_replies(
        plan,
        pd.DataFrame(dict(reply="The garden", why="", tokens=9.0), index=range(len(plan))).assign(
            why=np.where(plan["k"] == 4, "HTTP 400", ""),
            reply=lambda d: d["reply"].where(d["why"] == "", None),
        ),
    )
    why = np.where(plan["k"] == 4, "HTTP 400: context_length_exceeded", "")
    said = plots.ice_sentences(t, st.ice_correlations(t, pool, 0), "Nobody", "the truth", why)
    assert (
        said[0].startswith(
            f"This run cannot answer the question. Nobody was asked {len(plan)} questions: 0 (0%)"
        )
        and "hold no number" in said[0]
        and f"In {(plan['k'] == 4).sum()} refusals the prompt" in said[0]
        and "coherence 24 of 24 with 4" in said[2]
        and "says nothing about the method" in said[-1]
    )


def replies_of_one_part(pool, part):  # The truth there, and the same number everywhere else
    plan = st.ice_questions(pool, SMALL)
    truth = pool.set_index("item")
    said = [
        str(truth.at[item, dim]) if known else "0.5"
        for dim, item, known in zip(plan["dim"], plan["item"], plan["part"] == part)
    ]
    return st.scores_of_replies(plan, pd.DataFrame(dict(reply=said, why="", tokens=np.nan)))


@pytest.mark.parametrize(
    "part,shown,absent",
    [
        ("sets", "From fewest to most examples: coherence 1.000 (k=1) to 1.000 (k=4", "uniform 1.000"),
        ("ways", "Pooled Spearman by way of choosing: coherence uniform 1.000, stratified", "From fewest"),
    ],
)
def test_correlations_of_one_part_are_told_though_the_other_has_none(pool, part, shown, absent):
    scores = replies_of_one_part(pool, part)
    said = plots.ice_sentences(scores, st.ice_correlations(scores, pool, 5), "Somebody", "the truth")
    assert said[0].startswith("Somebody was asked")
    assert any(paragraph.startswith(shown) for paragraph in said)
    assert not any("cannot answer" in paragraph or absent in paragraph for paragraph in said)


# The figure by number of examples
@pytest.fixture
def panels():
    "Two dimensions with no, one and four examples; of ten questions some have no score, some were refused."
    curve = pd.DataFrame(
        [
            dict(dim=dim, k=k, value=v, lo=v - 0.1, hi=v + 0.2)
            for dim, values in dict(fluency=(-0.4, 0.1, 0.3), relevance=(0, 0.2, 0.6)).items()
            for k, v in zip((0, 1, 4), values)
        ]
    )
    counts = curve[["dim", "k"]].assign(asked=10, missing=[0.1, 0.2, 0.9] * 2, refused=[0, 1, 8] * 2)
    record = pd.DataFrame(dict(dim=["fluency", "relevance"], k=4, value=0.35))
    figure = plots.plot_example_counts(curve, counts, record)
    yield figure.axes, curve, counts
    plt.close(figure)


def test_the_points_of_a_dimension_stand_at_one_place_in_every_line_and_beside_their_number(panels):
    (left, right), curve, counts = panels
    lines = [bars.lines[0] for bars in left.containers], right.lines[::2], right.lines[1::2]
    stars = left.collections[1::2]  # Bars and stars by turns
    for dim, star, *of_dim in zip(("fluency", "relevance"), stars, *lines):
        correlation, missing, refused = (line.get_xydata().T for line in of_dim)
        assert np.abs(correlation[0] - [0, 1, 4]).max() < 0.1
        for places, _ in (missing, refused):
            np.testing.assert_allclose(places, correlation[0])
        np.testing.assert_allclose(correlation[1], curve.loc[curve["dim"] == dim, "value"])
        np.testing.assert_allclose(missing[1], [0.1, 0.2, 0.9])
        np.testing.assert_allclose(refused[1], [0, 0.1, 0.8])
        np.testing.assert_allclose(star.get_offsets(), [[correlation[0][-1], 0.35]])
    assert len({tuple(line.get_xdata()) for line in right.lines}) == 2, "dimensions stand side by side"


def test_the_panels_show_every_correlation_and_every_share_there_can_be(panels):
    (left, right), *_ = panels
    assert left.get_ylim() == (-1, 1)
    for ax, ends in ((left, (-1, 1)), (right, (0, 1))):
        low, high = ax.get_ylim()
        assert ends[0] - 0.1 < low <= ends[0] and ends[1] <= high < ends[1] + 0.1
        assert list(ax.get_xticks()) == [0, 1, 4] and ax.get_xlim()[0] < 0 and ax.get_xlim()[1] > 4
