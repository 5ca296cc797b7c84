"""Figures and facts of ICE: a rising curve, a run without a single score, and what each choice changes."""

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
    facts = plots.reply_facts(t, [""] * len(t))
    assert facts[:2] == (len(plan), len(plan)) and not any(facts[2:]), "all have a score, nothing is missing"
    effects = plots.choice_effects(corr).set_index("choice")
    assert list(effects.index) == ["way", "number", "set"] and effects.at["number", "end"] > 0.6
    assert effects["points"].to_numpy() == pytest.approx(100 * (effects["end"] - effects["start"]).abs())


def test_refusals_and_replies_without_a_number_are_counted_and_no_choice_has_an_effect(pool):
    plan = st.ice_questions(pool, SMALL)
    why = np.where(plan["k"] == 4, "HTTP 400: context_length_exceeded", "")
    reply = pd.Series("The garden", index=plan.index).where(plan["k"] != 4, None)
    t = st.scores_of_replies(plan, pd.DataFrame(dict(reply=reply, why=why, tokens=9.0)))
    facts, refused = plots.reply_facts(t, why), plan["k"] == 4
    assert (facts.questions, facts.scored, facts.not_sent) == (len(plan), 0, 0)
    assert facts.refused == facts.too_long == refused.sum() and facts.no_number == (~refused).sum()
    assert facts.refused_in_sets == (refused & (plan["part"] == "sets")).sum() == 4 * 2 * 12
    assert plots.choice_effects(st.ice_correlations(t, pool, 0)).empty


def replies_of_one_part(pool, part):  # The truth there, and the same number everywhere else
    plan = st.ice_questions(pool, SMALL)
    truth = pool.set_index("item")
    replies = [
        str(truth.at[item, dim]) if known else "0.5"
        for dim, item, known in zip(plan["dim"], plan["item"], plan["part"] == part)
    ]
    return st.scores_of_replies(plan, pd.DataFrame(dict(reply=replies, why="", tokens=np.nan)))


@pytest.mark.parametrize("part,choices", [("sets", ["number", "set"]), ("ways", ["way"])])
def test_effects_of_one_part_are_known_though_the_other_has_no_correlation(pool, part, choices):
    scores = replies_of_one_part(pool, part)
    effects = plots.choice_effects(st.ice_correlations(scores, pool, 5))
    assert effects["choice"].tolist() == choices and effects["start"].tolist() == [1.0] * len(choices)


def correlations(rows):  # part, dim, how, fold, k, value of pooled Spearman
    names = ["part", "dim", "how", "fold", "k", "value"]
    about = dict(level="pooled", coef="spearman", n=9, skipped=0, lo=np.nan, hi=np.nan)
    return pd.DataFrame([dict(zip(names, row)) | about for row in rows])


def test_an_effect_is_that_of_the_dimension_with_the_largest_difference():
    ways = [
        ("ways", "fluency", "uniform", 0, 4, 0.1),
        ("ways", "fluency", "stratified", 0, 4, 0.3),
        ("ways", "relevance", "uniform", 0, 4, 0.5),
        ("ways", "relevance", "uniform", 1, 4, 0.3),
        ("ways", "relevance", "stratified", 0, 4, 0.1),
        ("ways", "coherence", "uniform", 0, 4, np.nan),
    ]
    sets = [
        ("sets", "fluency", "none", 0, 0, 0.9),
        ("sets", "fluency", "uniform", 0, 1, 0.6),
        ("sets", "fluency", "uniform", 1, 1, 0.2),
        ("sets", "fluency", "uniform", 0, 4, 0.1),
        ("sets", "fluency", "uniform", 1, 4, np.nan),
        ("sets", "relevance", "uniform", 0, 1, 0.2),
    ]
    effects = plots.choice_effects(correlations(ways + sets)).set_index("choice")
    assert effects.loc["way"].tolist() == ["relevance", 0.1, 0.4, pytest.approx(30)], "the mean of two folds"
    assert effects.loc["number"].tolist() == ["fluency", pytest.approx(0.4), 0.1, pytest.approx(30)]
    assert effects.loc["set"].tolist() == ["fluency", 0.2, 0.6, pytest.approx(40)]


def test_the_record_says_how_far_a_sample_is_from_all_summaries():
    ends = dict(value_200=[0.3, 0.9], lo_200=[0.1, 0.8], hi_200=[0.5, 1.0], value_1536=[0.4, 0.7])
    assert plots.record_facts(pd.DataFrame(ends)) == pytest.approx((20, 15))


def test_questions_are_counted_by_part(pool):
    plan = st.ice_questions(pool, SMALL)
    assert plots.question_facts(pool, plan, SMALL) == (12, 6, 912, 576, 336, 48)
    only_sets = plan[plan["part"] == "sets"]
    assert plots.question_facts(pool, only_sets, SMALL)[2:5] == (336, 0, 336)


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


def test_the_points_of_a_dimension_stand_at_one_place_in_every_line_and_next_to_their_number(panels):
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
