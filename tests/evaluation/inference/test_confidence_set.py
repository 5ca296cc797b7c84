"""Which methods equal the best within noise: levels, clusters, and what a winner is worth on other texts."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.confidence_set import methods
from uetrust.evaluation.inference import confidence_set as sets
from uetrust.evaluation.inference.confidence_set import (
    _comparisons_with_best,
    _jackknife_covariance,
    _shrunken_values,
    _simulated_levels,
    confidence_set,
    sets_facts,
    winner_sentences,
    winners_table,
)
from uetrust.evaluation.prr import prr, prr_difference


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
def test_the_best_stays_in_the_set_and_all_intervals_hold(spread):
    "200 studies: 95 % with a Monte Carlo error of 1.5 %."
    levels = _simulated_levels(spread=spread, seed=1)
    assert levels["set"] >= 0.92 and levels["intervals"] >= 0.92
    assert abs(levels["shrunken"]) < max(0.5 * levels["winner"], 0.03)


def test_a_method_that_is_far_behind_leaves_the_set():
    assert _simulated_levels(spread=3.0, studies=50)["size"] < 6


def test_values_and_errors_are_those_of_prr():
    quality, uncertainty, ids = methods(documents=60)
    found = confidence_set(quality, uncertainty, ids)
    row = found.table.set_index("method").loc["b"]
    want = prr(quality, uncertainty["b"], document=ids)
    assert (row["value"], row["se"]) == pytest.approx((want.value, want.se)) and found.units == 60
    assert confidence_set(quality, uncertainty).table.set_index("method").loc["b", "se"] != row["se"]


def test_with_two_methods_the_interval_is_the_one_sided_test_of_their_difference():
    quality, uncertainty, _ = methods()
    gap = prr_difference(quality, uncertainty["a"], uncertainty["c"])
    table = confidence_set(quality, uncertainty[["a", "c"]]).table.set_index("method")
    assert table.loc["a", "lo"] == 0 and table.loc["c", "hi"] == 0
    assert table.loc["a", "hi"] == pytest.approx(gap.value + 1.645 * gap.se, abs=0.05 * gap.se)
    assert list(table.index[table["in_set"]]) == ["a"]


def test_the_winner_of_equal_methods_is_worth_less_on_other_texts():
    quality, uncertainty, _ = methods(noises=(3.0, 3.0, 3.0))
    rng = np.random.default_rng(5)
    more = pd.DataFrame(-quality.to_numpy()[:, None] + 3 * rng.normal(size=(240, 30)))
    found = confidence_set(quality, uncertainty.join(more.add_prefix("m")), splits=40)
    first = found.table.iloc[0]
    assert len(found.best) > 20 and found.held_out < first["value"] and first["shrunken"] < first["value"]
    assert found.held_out == pytest.approx(found.table["value"].mean(), abs=0.06)


def test_shrinkage_keeps_what_noise_cannot_explain():
    values = np.array([0.9, 0.1, 0.0, -0.1])
    assert _shrunken_values(values, 1e-9 * np.eye(4)) == pytest.approx(values, abs=1e-6)
    assert np.ptp(_shrunken_values(values, 100 * np.eye(4))) == 0


def test_equal_methods_and_missing_values():
    quality, uncertainty, _ = methods()
    twice = uncertainty.assign(again=uncertainty["a"])
    assert set(confidence_set(quality, twice).best) >= {"a", "again"}
    lo, hi = _comparisons_with_best([1.0, 1.0], np.tile([[1.0, 1.0]], (9, 1)))
    assert (lo, hi) == pytest.approx((0, 0)) and _jackknife_covariance(np.ones((5, 2))).sum() == 0
    quality[:3] = np.nan
    assert confidence_set(quality, uncertainty).n == 237
    with pytest.raises(ValueError, match="at least 10 samples .* found 7"):
        confidence_set(quality[:10], uncertainty[:10])


def test_the_summary_says_what_more_texts_change():
    rows = dict(name=["a", "a", "b", "b"], n=[300, 2000] * 2, methods=7, winner=["x", "y", "z", "z"])
    facts = sets_facts(pd.DataFrame(rows).assign(in_set=[7, 2, 4, 3]))
    assert facts == (2, "7", "300", "4 to 7", "2,000", "2 to 3", 1)
    assert sets_facts(winners_table({})) is None


def test_many_texts_are_halved_less_often(monkeypatch):
    quality, uncertainty, _ = methods(documents=60)
    few = confidence_set(quality, uncertainty, splits=sets.FEWEST_SPLITS).held_out
    assert confidence_set(quality, uncertainty, splits=50).held_out != few
    monkeypatch.setattr(sets, "MOST_SPLIT_ROWS", 0)
    assert confidence_set(quality, uncertainty, splits=50).held_out == few


def test_the_summary_counts_the_rankings_that_keep_their_winner():
    winner = ["x", "x", "y", "y", "z", "w"]
    rows = dict(name=list("aabbcc"), n=[300, 2000] * 3, methods=7, winner=winner, in_set=3)
    facts = sets_facts(pd.DataFrame(rows))
    assert (facts.same, facts.rankings) == (2, 3)


def test_a_sentence_says_from_how_many_others_the_winner_is_distinguished():
    row = dict(
        name="ne-en", n=9000, methods=7, winner="msp", prr=0.5, lo=0.4, hi=0.6, shrunken=0.4, held_out=0.3
    )
    alone, tied = winner_sentences(pd.DataFrame([row | dict(in_set=1), row | dict(in_set=3)]))
    assert "The texts distinguish all 6 others from it." in alone and "cannot" not in alone
    assert "The texts cannot distinguish 2 of the 6 others from it." in tied
    assert alone.startswith("On ne-en with 9,000 texts msp is first, with a PRR of 0.500 [0.400, 0.600].")
