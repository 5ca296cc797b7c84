"""Pairs of quality and uncertainty: labels, joins by name, gaps."""

import numpy as np
import pandas as pd
import pytest

from tests.helpers.measure_cases import near
from uetrust.core.checks import Undefined
from uetrust.evaluation.calibration import ece
from uetrust.evaluation.measures import auprc, base_rate, spearman_uq
from uetrust.evaluation.pairs import acceptable_labels, auroc, complete_pairs, labelled_pairs


def test_a_label_needs_a_threshold():
    for f in (auroc, auprc, ece, base_rate):
        with pytest.raises(ValueError, match="quality holds 0.3, which is neither 0 nor 1: state tau"):
            f([1, 0.3, 0], [-0.1, -0.2, -0.3])
    assert auroc([1, 0.3, 0], [-0.3, -0.1, -0.2], tau=0.3) == 1 / 2  # tau itself is acceptable
    assert auroc([1, 0.3, 0], [-0.3, -0.1, -0.2], tau=0.31) == 1


# ---- what enters
def test_series_are_joined_by_name():
    quality, uncertainty = pd.Series([0.9, 0.1, 0.5], list("abc")), pd.Series([3, 1, 2, 9], list("bacd"))
    assert spearman_uq(quality, uncertainty) == near(1)
    assert complete_pairs(quality, uncertainty)[1].tolist() == [1, 3, 2]
    assert acceptable_labels(quality, 0.5).to_dict() == dict(a=1, b=0, c=1)


def test_unequal_lengths_are_an_error():
    with pytest.raises(ValueError, match="quality has 3 values and uncertainty 2"):
        complete_pairs([1, 2, 3], [1, 2])


def test_missing_quality_is_not_bad_quality():
    y = acceptable_labels([0.9, np.nan, 0.1], 0.5)
    assert y == near(np.array([1, np.nan, 0]))
    assert labelled_pairs(y, [1, 2, 3])[0].tolist() == [True, False]


@pytest.mark.parametrize(
    "quality, tau, message",
    [
        ([1, 1, 1], None, "one class: all 3 summaries are acceptable$"),
        ([0, 0], None, "one class: all 2 summaries are bad$"),
        ([0.4, 0.9], 0.4, "one class: all 2 summaries are acceptable at tau=0.4$"),
        ([0.4, 0.9], 0.95, "one class: all 2 summaries are bad at tau=0.95$"),
    ],
)
def test_a_single_class_is_named_unless_one_is_enough(quality, tau, message):
    uncertainty = np.arange(len(quality))
    for f in (auroc, auprc, base_rate, labelled_pairs):
        with pytest.raises(Undefined, match=message):
            f(quality, uncertainty, tau)
    labels, kept = labelled_pairs(quality, uncertainty, tau, both=False)
    assert (
        labels.tolist() == ["acceptable" in message] * len(quality) and kept.tolist() == uncertainty.tolist()
    )


def test_two_classes_are_labels_whether_both_are_needed_or_not():
    for both in (True, False):
        assert labelled_pairs([0.2, 0.7], [1, 2], 0.5, both)[0].tolist() == [False, True]
