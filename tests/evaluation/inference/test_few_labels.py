"""TODO."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.few_labels import labels_of
from uetrust import prr, prr_difference, prr_difference_from_labels, prr_from_labels
from uetrust.evaluation.inference.few_labels import from_labels
from uetrust.evaluation.measures import aurc, selective_accuracy
from uetrust.evaluation.pairs import auroc


def test_value_by_hand():
    "Four of six labelled: each takes up 1.5 positions, of weights 6, 5, 4, 3, 2, 1."
    labels = [3, 4, np.nan, 1, np.nan, 0]
    found = prr_from_labels(labels, None, [1, 2, 3, 4, 5, 6], area="sum")
    share = np.array([6 + 5 / 2, 5 / 2 + 4, 3 + 2 / 2, 2 / 2 + 1]) / 21
    area, perfect = share @ [3, 4, 1, 0], share @ [4, 3, 1, 0]
    assert found.value == pytest.approx((area - 2) / (perfect - 2), abs=1e-12)
    assert (found.n, found.n_labels) == (6, 4)


@pytest.mark.parametrize("area", ["mean", "sum"])
def test_all_labelled_is_prr(texts, area):
    truth, unsure, metrics = texts["truth"], texts["unsure"].round(1), texts[["close"]]  # with ties
    found = prr_from_labels(truth, metrics, unsure, area=area)
    assert found.value == pytest.approx(prr(truth, unsure, area=area).value, abs=1e-12)
    assert found.se == 0 and "all texts are labelled" in found.note
    both = prr_difference_from_labels(truth, metrics, unsure, texts["other"], area=area)
    expected = prr_difference(truth, unsure, texts["other"], area=area).value
    assert both.value == pytest.approx(expected, abs=1e-12)


def test_jackknife_of_labels_alone_is_that_of_prr(texts):
    "A few of very many: the standard error of labels alone is the jackknife's, but for 1 - 1/n."
    drawn = texts.iloc[:40]
    everything = pd.concat([drawn, pd.DataFrame(dict(unsure=np.zeros(40_000) - 99), range(40_000))])
    drawn_only = prr_from_labels(
        drawn["truth"], None, drawn["unsure"], probability=pd.Series(1e-9, drawn.index)
    )
    assert drawn_only.se == pytest.approx(prr(drawn["truth"], drawn["unsure"]).se * 40 / 39, rel=1e-6)
    assert prr_from_labels(drawn["truth"], None, everything["unsure"]).n == 40_040


def test_a_metric_that_is_the_truth_leaves_no_width(texts):
    labels, target = labels_of(texts), prr(texts["truth"], texts["unsure"]).value
    metrics = texts[["truth"]].rename(columns={"truth": "metric"})
    found = prr_from_labels(labels, metrics, texts["unsure"])
    assert found.value == pytest.approx(target, abs=1e-3) and found.hi - found.lo < 2e-3
    turned = prr_from_labels(labels, texts[["truth", "noise"]], texts["unsure"])
    assert turned.value == pytest.approx(target, abs=2e-3)


def test_degenerate_metrics_change_nothing(texts):
    labels = labels_of(texts)
    alone = prr_from_labels(labels, None, texts["unsure"])
    rare = texts.assign(rare=(texts.index == "text 7") * 1.0)  # constant on the labelled texts
    assert "text 7" not in labels.index
    for metrics in (texts[["constant"]], rare[["rare"]], texts[[]]):
        assert prr_from_labels(labels, metrics, texts["unsure"])[:4] == pytest.approx(alone[:4], rel=1e-9)
    with_constant = prr_from_labels(labels, texts[["close", "constant"]], texts["unsure"])
    assert with_constant[:4] == pytest.approx(prr_from_labels(labels, texts[["close"]], texts["unsure"])[:4])


def test_a_good_metric_shortens_the_interval(texts):
    labels = labels_of(texts)
    widths = [
        found.hi - found.lo
        for found in (prr_from_labels(labels, used, texts["unsure"]) for used in (None, texts[["close"]]))
    ]
    assert widths[1] < 0.75 * widths[0]
    found = prr_from_labels(labels, texts[["close"]], texts["unsure"])
    assert "metrics used: close" in found.note and found.lo < found.value < found.hi <= 1


def test_clusters_widen_what_repeats(texts):
    "Every document twice, drawn as a whole: half of the labels tell nothing new."
    twice = pd.concat([texts, texts.rename(index=lambda name: f"copy of {name}")])
    documents = list(texts.index) * 2
    labels = twice["truth"].where([name in set(texts.index[:60]) for name in documents])
    separate = prr_from_labels(labels, None, twice["unsure"])
    together = prr_from_labels(labels, None, twice["unsure"], document=documents)
    assert together.value == pytest.approx(separate.value)
    assert together.se == pytest.approx(separate.se * 2**0.5, rel=0.12)


def test_unequal_probabilities_are_undone(texts):
    rng, target = np.random.default_rng(0), prr(texts["truth"], texts["unsure"]).value
    probability = pd.Series(np.where(texts["truth"] < 0, 0.4, 0.05), texts.index)
    drawn = [texts["truth"][rng.random(600) < probability] for _ in range(100)]
    known = np.mean([prr_from_labels(one, None, texts["unsure"], probability).value for one in drawn])
    ignored = np.mean([prr_from_labels(one, None, texts["unsure"]).value for one in drawn])
    assert abs(known - target) < 0.02 and abs(ignored - target) > 2 * abs(known - target) + 0.01


def test_coverage_in_a_small_simulation(texts):
    target = prr(texts["truth"], texts["unsure"]).value
    found = [prr_from_labels(labels_of(texts, 50, i), texts[["close"]], texts["unsure"]) for i in range(120)]
    inside = np.mean([one.lo <= target <= one.hi for one in found])
    assert 0.89 <= inside <= 0.995
    assert np.std([one.value for one in found]) == pytest.approx(np.mean([one.se for one in found]), rel=0.2)


def test_missing_values(texts):
    gappy = texts.copy()
    gappy.loc[["text 1", "text 2"], "unsure"] = np.nan
    gappy.loc["text 3", "close"] = np.nan
    labels = labels_of(texts.drop(index=["text 1", "text 2"]))
    found = prr_from_labels(labels, gappy[["close"]], gappy["unsure"])
    assert found.n == 598 and "2 of 600 texts have no uncertainty" in found.note
    assert "close is missing for 1 of 600 texts" in found.note
    assert found == prr_from_labels(labels.reindex(texts.index), gappy[["close"]], gappy["unsure"])
    few = prr_from_labels(labels[:3], None, gappy["unsure"])
    assert np.isnan(few.value) and "3 labels: at least 4" in few.note
    same = prr_from_labels(labels * 0, None, gappy["unsure"])
    assert np.isnan(same.value) and "constant labels" in same.note
    one_bad = pd.Series([1.0] * 9 + [0.0])
    found = prr_from_labels(one_bad, None, range(10), probability=[0.1] * 10)
    assert (
        np.isfinite(found.value) and np.isnan(found.se) and "one text carries all of the risk" in found.note
    )


def test_errors_name_what_was_found(texts):
    labels, unsure = labels_of(texts), texts["unsure"]
    stranger = pd.Series([1.0], ["text 999"])
    cases = {
        "samples without an uncertainty score: text 999": lambda: prr_from_labels(stranger, None, unsure),
        "metrics lack 599 of 600 texts: text 1": lambda: prr_from_labels(
            labels, texts[["close"]][:1], unsure
        ),
        "labelled text .* is 1.5": lambda: prr_from_labels(labels, None, unsure, unsure * 0 + 1.5),
        "3 values for 600 texts": lambda: prr_from_labels([1, 2, 3], None, unsure),
        "area must be 'mean' or 'sum', got 'median'": lambda: prr_from_labels(
            labels, None, unsure, area="median"
        ),
        "found infinity": lambda: prr_from_labels(labels * np.inf, None, unsure),
        "auroc needs labels 0 or 1": lambda: from_labels(labels, None, (unsure,), "auroc"),
        "statistic must be one of": lambda: from_labels(labels, None, (unsure,), "ece"),
    }
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call()


def test_other_statistics(texts):
    good, unsure = (texts["truth"] > -0.5).astype(float), texts["unsure"]
    expected = dict(auroc=auroc(good, unsure), aurc=aurc(good, unsure))
    expected["selective_risk"] = 1 - selective_accuracy(good, unsure, 0.7)
    for name, value in expected.items():
        options = dict(statistic=name, coverage=0.7)
        assert from_labels(good, None, (unsure,), **options).value == pytest.approx(value, abs=1e-12)
        few = from_labels(good.sample(150, random_state=0), texts[["close"]], (unsure,), **options)
        assert few.lo <= value <= few.hi and few.hi - few.lo < 0.3


def test_rare_errors_have_a_value_and_no_interval(texts):
    "Two errors in 20 labels hardly tell the gain of a perfect order."
    good = pd.Series(1.0, texts.index[:20])
    good[texts["truth"][:20].nsmallest(2).index] = 0
    for found in (
        prr_from_labels(good, None, texts["unsure"]),
        prr_difference_from_labels(good, None, texts["unsure"], texts["other"]),
    ):
        assert np.isfinite(found.value) and np.isnan([found.se, found.lo, found.hi]).all()
        assert found.note.startswith("no interval: the risk rests on about 2 of 20 labels")
    good[texts["truth"][:20].nsmallest(5).index] = 0
    assert np.isfinite(prr_from_labels(good, None, texts["unsure"]).lo)


def test_a_difference_the_other_way_round_is_its_negative(texts):
    labels, both = labels_of(texts, 40), (texts["unsure"], texts["other"])
    one = prr_difference_from_labels(labels, texts[["close"]], *both)
    other = prr_difference_from_labels(labels, texts[["close"]], *both[::-1])
    assert (other.value, other.lo, other.hi) == pytest.approx((-one.value, -one.hi, -one.lo), abs=1e-9)
    none = prr_difference_from_labels(labels, None, texts["unsure"], 2 * texts["unsure"])
    assert (none.value, none.lo, none.hi) == pytest.approx((0, 0, 0), abs=1e-9)


def test_two_uncertainties_in_another_order_are_refused(texts):
    labels, unsure = labels_of(texts), texts["unsure"]
    with pytest.raises(ValueError, match="do not have the same samples in the same order"):
        prr_difference_from_labels(labels, None, unsure, texts["other"][::-1])


@pytest.mark.parametrize(
    "statistic, marks, message",
    [
        ("aurc", [0, 1, 1, 2], "aurc needs labels 0 to 1, found 0 to 2"),
        ("aurc", [-1, 0, 1, 1], "aurc needs labels 0 to 1, found -1 to 1"),
        ("selective_risk", [0, 0.5, 1, 1.5], "selective_risk needs labels 0 to 1, found 0 to 1.5"),
        ("auroc", [0, 0.5, 1, 1], "auroc needs labels 0 or 1, found 0 to 1"),
        ("auroc", [0, 1, 1, 2], "auroc needs labels 0 or 1, found 0 to 2"),
    ],
)
def test_labels_that_a_statistic_cannot_take_are_refused(texts, statistic, marks, message):
    labels = pd.Series(marks, texts.index[:4], float)
    with pytest.raises(ValueError, match=message):
        from_labels(labels, None, (texts["unsure"],), statistic)


@pytest.mark.parametrize("n, quantile", [(6, 2.570582), (8, 2.364624), (12, 2.200985)])  # Printed tables of t
def test_a_difference_is_as_wide_as_student_s_t_of_one_degree_less_than_labels(n, quantile):
    """Half of the labels 0, half 1, on the area of sums: the gain of a perfect order is p(1 - p), flat at
    p = 1/2, so that only the numerator varies, and both ends lie a quantile of t times the error away."""
    labels = pd.Series([0.0, 1.0] * (n // 2), range(n))
    first = np.arange(60_000.0)
    second = np.r_[0.0, 2.0, 1.0, first[3:]]  # Two neighbours change places
    found = prr_difference_from_labels(labels, None, first, second, area="sum")
    half = quantile * found.se
    assert (found.lo, found.hi) == pytest.approx((found.value - half, found.value + half), abs=1e-3 * half)
