"""Calibration: equal to recorded outputs of other implementations, scikit-learn and brute force."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers.measure_cases import cases, near, samples
from uetrust.core.checks import Undefined
from uetrust.evaluation.calibration import (
    _centred_isotonic,
    _confidence_from_uncertainty,
    balanced_accuracy,
    cohen_kappa,
    ece,
    ece_adaptive,
    ece_debiased_sq,
    geometric_mean_cut,
    isotonic_pcc,
    reliability_table,
)
from uetrust.evaluation.measures import auprc
from uetrust.evaluation.pairs import acceptable_labels, auroc


def test_ece_equals_lm_polygraph(ranked):
    _, y, uncertainty, want = ranked
    minmax = ece(y, uncertainty, to_confidence="minmax")
    assert minmax == near(want["lm_polygraph_ece_20bins(normalize=True)"])
    assert ece(y, -_confidence_from_uncertainty(uncertainty, "minmax")) == near(
        want["lm_polygraph_ece_20bins(normalize=False, u in [-1,0])"]
    )


def test_isotonic_equals_lm_polygraph(ranked):
    quality, _, uncertainty, want = ranked
    key = "lm_polygraph_isotonic_pcc(quality min-max to [0,1])"
    if want[key] is not None:
        assert isotonic_pcc(quality, uncertainty, compat="lm_polygraph") == near(want[key])


@pytest.mark.parametrize("name", ["binary_random", "binary_ties", "binary_inf", "binary_one_class"])
def test_binary_ece_equals_lm_polygraph(oracle, name):
    y, uncertainty, want = cases(oracle, "ue_metrics_binary")[name]
    negated = want["ece_inputs_estimator"]
    assert ece(y, negated) == near(want["ece"])
    assert ece(y, negated, bins=5) == near(want["ece_bins5"])
    if name == "binary_inf":
        assert want["ece_minmax"] == {"raises": "ValueError"}
        with pytest.raises(ValueError, match="finite uncertainty"):
            ece(y, uncertainty, to_confidence="minmax")
    else:
        assert ece(y, uncertainty, to_confidence="minmax") == near(want["ece_minmax"])


def test_missing_labels_do_not_spoil_ece(oracle):
    y, _, want = cases(oracle, "ue_metrics_binary")["binary_nan_target"]
    uncertainty, both = np.array(want["ece_inputs_estimator"]), ~np.isnan(y)
    assert want["ece"] == "NaN" and not both.all()
    assert ece(y, uncertainty) == ece(y[both], uncertainty[both])


# ---- the same by other means
@given(x=samples)
def test_labels_and_decisions_equal_scikit_learn(x):
    from sklearn import metrics as sk

    quality, uncertainty = x
    assume(0 < (y := quality >= 0.5).sum() < len(quality))
    assert auroc(quality, uncertainty, 0.5) == near(sk.roc_auc_score(~y, uncertainty))
    assert auprc(quality, uncertainty, 0.5) == near(sk.average_precision_score(~y, uncertainty))
    assert cohen_kappa(quality, uncertainty, 0.5, 0.5) == near(sk.cohen_kappa_score(y, uncertainty <= 0.5))
    assert balanced_accuracy(quality, uncertainty, 0.5, 0.5) == near(
        sk.balanced_accuracy_score(y, uncertainty <= 0.5)
    )


@given(x=samples, bins=st.integers(1, 9))
def test_reliability_equals_scikit_learn(x, bins):
    from sklearn.calibration import calibration_curve

    quality, uncertainty = x
    y, c = acceptable_labels(quality, 0.5), 1 - uncertainty
    assume(0 < y.sum() < len(y))
    table = reliability_table(quality, uncertainty, bins, 0.5, "complement")
    true, mean = calibration_curve(y, c, n_bins=bins)
    assert table.acceptable.to_numpy() == near(true)
    assert table.confidence.to_numpy() == near(mean)
    assert ece(quality, uncertainty, bins, 0.5, "complement") == near((table.n / len(y)) @ abs(true - mean))


@given(x=samples)
def test_gmean_cut_is_the_best_of_all_cuts(x):
    quality, uncertainty = x
    assume(0 < (y := quality >= 0.5).sum() < len(quality))
    score = {c: (uncertainty[y] <= c).mean() * (uncertainty[~y] > c).mean() for c in sorted(uncertainty)}
    assert score[geometric_mean_cut(quality, uncertainty, 0.5)] == near(max(score.values()))
    assert geometric_mean_cut(quality, uncertainty, 0.5) == min(
        c for c, v in score.items() if v >= max(score.values()) - 1e-12
    )


# ---- calibration
def test_debiased_squared_gap_is_exactly_unbiased():
    "Expectation over all labels of six samples in two bins: the squared gap; plain squares exceed it."
    c, p = np.repeat([0.25, 0.75], 3), np.repeat([0.5, 0.75], 3)
    got = plain = 0
    for y in itertools.product([0, 1], repeat=6):
        chance = np.prod(np.where(y, p, 1 - p))
        table = reliability_table(y, -c, bins=2, adaptive=True)
        got += chance * ece_debiased_sq(y, -c, bins=2)
        plain += chance * (table.n * table.gap**2).sum() / 6
    assert got == near(np.mean((p - c) ** 2))
    assert plain > got + 0.05


@pytest.mark.parametrize("f", [ece, ece_adaptive, ece_debiased_sq])
def test_certain_and_right_is_calibrated(f):
    y = np.r_[np.zeros(20), np.ones(30)]
    assert f(y, -y, bins=4) == 0
    assert f(1 - y, -y, bins=4) == 1


def test_a_bin_of_one_sample_has_no_known_noise():
    "Its missing variance must not count as zero."
    with pytest.raises(Undefined, match="1 of 2 bins hold one sample"):
        ece_debiased_sq([1, 0, 1], [-0.1, -0.5, -0.9], bins=2)


def test_calibration_error_of_one_class_exists():
    assert ece([1, 1, 1, 1], [-0.5, -0.5, -1, -1]) == 0.25


@given(x=samples, bins=st.integers(1, 6))
def test_equal_mass_bins_keep_ties_together_and_sizes_close(x, bins):
    quality, uncertainty = x
    table = reliability_table(quality, uncertainty, bins, 0.5, "complement", adaptive=True)
    assert table.n.sum() == len(quality)
    assert table.confidence.is_monotonic_increasing
    n = np.arange(len(quality)) / len(quality)  # no ties
    assert set(reliability_table(quality, n, bins, 0.5, "complement", adaptive=True).n) <= {
        len(quality) // bins,
        -(-len(quality) // bins),
    }


def test_bins_are_open_on_the_left_except_the_first():
    table = reliability_table([1, 0, 1, 0, 1], -np.array([0, 0.25, 0.3, 0.5, 1]), bins=4)
    assert table.n.to_dict() == {0: 2, 1: 2, 3: 1}


@pytest.mark.parametrize(
    "scale,uncertainty",
    [("negate", [0.2, -0.3]), ("negate", [-1.5, -0.2]), ("complement", [1.2, 0.1]), ("exp", [-0.1, 2])],
)
def test_confidence_outside_its_range_is_an_error(scale, uncertainty):
    "They would fall into no bin, and the error would be computed without them."
    with pytest.raises(ValueError, match=r"1 of 2 confidences lie outside \[0, 1\]"):
        _confidence_from_uncertainty(uncertainty, scale)
    with pytest.raises(ValueError, match=r"1 of 2 confidences lie outside \[0, 1\]"):
        ece([1, 0], uncertainty, to_confidence=scale)


@given(x=samples)
def test_isotonic_knots_fall(x):
    quality, uncertainty = x
    k = np.array(_centred_isotonic(quality, uncertainty))
    assert (np.diff(k[:, 0]) >= 0).all()
    assert all(d < 0 or v in (0, 1) for d, v in zip(np.diff(k[:, 1]), k[1:, 1], strict=True))
    assert k[0, 0] == uncertainty.min() and (k[-1, 0] == uncertainty.max() or len(k) == 1)


def test_isotonic_slip_of_the_released_code_is_kept_separate():
    "A perfectly linear fall: only the two ends can be missed, each by one step."
    x = np.arange(8) / 8
    assert isotonic_pcc(1 - x, x) == near(2 / 8**3)
    assert isotonic_pcc(1 - x, x, compat="lm_polygraph") > 0.01


def test_isotonic_needs_quality_on_its_scale():
    with pytest.raises(ValueError, match="found 1 to 9"):
        isotonic_pcc([1, 9, 5], [3, 1, 2])


def test_constant_decision_has_no_kappa_and_half_the_accuracy():
    y, uncertainty = [1, 1, 1, 0], [0.1, 0.2, 0.3, 0.4]
    for cut in (0, 1):
        assert (cohen_kappa(y, uncertainty, cut), balanced_accuracy(y, uncertainty, cut)) == (0, 0.5)
