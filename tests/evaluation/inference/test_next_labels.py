"""The next labels: what is drawn matters most, and what it gains over a uniform draw."""

import numpy as np
import pytest

from tests.helpers.few_labels import labels_of
from uetrust import prr, prr_from_labels
from uetrust.evaluation.inference.next_labels import inclusion_probabilities, missing_scores, next_labels


def test_next_labels_draws_what_matters(texts):
    metrics, unsure = texts[["close"]], texts["unsure"]
    found = next_labels(metrics, unsure, 60)
    assert found["next"].sum() == 60 and found["probability"].sum() == pytest.approx(60)
    assert found["probability"].min() > 0.4 * 60 / 600
    bad_but_certain = (texts["close"] < -1) & (unsure < unsure.quantile(0.3))
    assert found["probability"][bad_but_certain].mean() > 1.5 * 60 / 600
    assert next_labels(metrics, unsure, 60, seed=1)["next"].ne(found["next"]).any()
    labels = texts["truth"][found["next"]]
    more = next_labels(metrics, unsure, 60, labels, found["probability"])
    assert not (more["next"] & found["next"]).any()
    assert (more["probability"] >= found["probability"]).all()
    with pytest.raises(ValueError, match="540 of 600 have no label"):
        next_labels(metrics, unsure, 541, labels)


def test_next_labels_gain_over_uniform(texts):
    "Same number of labels: the estimate is unbiased and spreads less."
    metrics, unsure = texts[["close"]], texts["unsure"]
    target, active, even = prr(texts["truth"], unsure).value, [], []
    for seed in range(100):
        plan = next_labels(metrics, unsure, 50, seed=seed)
        active.append(prr_from_labels(texts["truth"][plan["next"]], None, unsure, plan["probability"]).value)
        even.append(prr_from_labels(labels_of(texts, 50, seed), None, unsure).value)
    assert abs(np.mean(active) - target) < 0.03 and np.std(active) < 0.9 * np.std(even)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_method_that_orders_as_the_metric_does_leaves_nothing_to_choose_by(texts):
    "Its PRR is 1 by the metric whatever the labels, so every text may be drawn."
    metrics = texts[["close"]]
    found = next_labels(metrics, -texts["close"], 60)
    assert found["next"].sum() == 60 and np.ptp(found["probability"]) == 0
    both = texts[["unsure"]].assign(same=-texts["close"])
    alone = next_labels(metrics, texts["unsure"], 60)
    assert next_labels(metrics, both, 60)["probability"].equals(alone["probability"])


def test_a_size_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="sizes must be positive numbers"):
        inclusion_probabilities(np.array([1.0, np.nan]), 1)


def test_scores_that_are_missing_are_counted(texts):
    metrics, unsure = texts[["close"]].copy(), texts["unsure"].copy()
    assert missing_scores(metrics, unsure) == []
    unsure.iloc[:10], metrics.iloc[5:16] = np.nan, np.nan
    assert missing_scores(metrics.assign(none=np.nan), unsure) == [
        "10 of 600 texts have no uncertainty and cannot be drawn",
        "close is missing for 6 of 590 texts, where its median stands",
        "none is missing for 590 of 590 texts, and is left out",
    ]


def test_a_label_that_is_empty_needs_no_uncertainty(texts):
    metrics, unsure, labels = texts[["close"]], texts["unsure"].copy(), texts["truth"].copy()
    unsure.iloc[:10], labels.iloc[:100] = np.nan, np.nan
    found = next_labels(metrics, unsure, 40, labels)
    assert len(found) == 590 and found["next"].sum() == 40 and not found["next"].iloc[90:].any()
    labels.iloc[3] = 1
    with pytest.raises(ValueError, match=f"without an uncertainty score: {texts.index[3]}$"):
        next_labels(metrics, unsure, 40, labels)
