"""How good a metric must be: the identity is exact, and the closed forms agree with simulation."""

import numpy as np
import pandas as pd
import pytest

from uetrust.evaluation.cells import PRRCells
from uetrust.evaluation.inference.dose import (
    _expected_prr,
    _normal_study,
    _required_reliability,
    _wrong_choice,
    degraded_truth,
    metric_needs,
    needs_sentence,
    noise_of_reliability,
    phase_table,
    prr_parts,
)
from uetrust.evaluation.inference.power import power_table
from uetrust.evaluation.prr import prr


def study(reliability=0.7, bias=0.2, n=4000, seed=0):
    t, m, u = _normal_study([0.6, 0.45], [0, bias], reliability, n, np.random.default_rng(seed))
    return t, m, pd.DataFrame(u, columns=["good", "fair"])


@pytest.mark.parametrize("area", ["mean", "sum"])
@pytest.mark.parametrize("scale", [1, 1e-6, -3])
def test_a_metric_is_ratio_times_truth_plus_error(area, scale):
    rng = np.random.default_rng(1)
    t = np.round(rng.exponential(2, 300))
    m = scale * np.maximum(t - 1, 0) + abs(scale) * rng.random(300) + 1000 * abs(scale)
    u = pd.DataFrame(dict(a=-t + rng.normal(size=300), b=np.round(rng.normal(size=300))))
    parts = prr_parts(t, m, u, area).methods
    joined = parts.ratio * parts.truth + parts.error
    assert joined.to_numpy() == pytest.approx(parts.metric.to_numpy(), abs=1e-9)
    assert parts.metric[0] == pytest.approx(prr(m, u["a"], area=area).value, abs=1e-9)
    assert parts.truth[1] == pytest.approx(prr(t, u["b"], area=area).value, abs=1e-12)


def test_the_ratio_is_the_correlation_for_normal_scores_and_not_for_others():
    t, m, u = study()
    parts = prr_parts(t, m, u)
    assert parts.methods["ratio"][0] == pytest.approx(parts.correlation, abs=0.02)
    rare = (t > 1.5).astype(float)
    skewed = prr_parts(rare, rare + np.random.default_rng(2).normal(size=len(t)), u)
    assert abs(skewed.methods["ratio"][0] - skewed.correlation) > 0.04


@pytest.mark.parametrize("bias", [-0.3, 0, 0.3])
def test_expected_prr_agrees_with_simulation(bias):
    _, m, u = study(0.5, bias, 20_000, 3)
    found = prr(m, u["fair"])
    assert found.value == pytest.approx(_expected_prr(0.45, 0.5, bias), abs=3 * found.se)


@pytest.mark.parametrize(("reliability", "bias", "n"), [(0.5, 0.0, 100), (0.8, 0.1, 100), (0.8, 0.3, 50)])
def test_wrong_choices_agree_with_simulation(reliability, bias, n):
    t, m, u = study(reliability, bias)
    spread = power_table(m, u).unit_sd.iloc[-1]
    wrong = []
    for seed in range(300):
        _, m, u = study(reliability, bias, n, seed)
        wrong.append(np.diff(PRRCells(m[:, None], u.to_numpy()).value[:, 0])[0] > 0)
    error = np.sqrt(0.25 / 300)
    assert np.mean(wrong) == pytest.approx(_wrong_choice(0.15, n, reliability, bias, spread), abs=3 * error)


def test_the_required_reliability_chooses_as_often_as_required():
    for bias in (0, 0.05, 0.3):
        least = _required_reliability(0.1, 900, bias, unit_sd=1.2, confidence=0.8)
        assert _wrong_choice(0.1, 900, least, bias, 1.2) == pytest.approx(0.2)
        assert _wrong_choice(0.1, 900, least - 0.02, bias, 1.2) > 0.2
    assert np.isnan(_required_reliability(0.1, 100, unit_sd=1.2))
    with pytest.raises(ValueError, match="a bias of at least 0"):
        _required_reliability(0.1, 100, bias=-0.1)


def test_doses_do_what_they_say():
    rng = np.random.default_rng(4)
    t, words, own = rng.normal(size=5000), rng.integers(5, 50, 5000), rng.random(5000) < 0.5
    assert np.corrcoef(t, degraded_truth(t, noise=noise_of_reliability(0.3)))[0, 1] == pytest.approx(
        0.3, abs=0.03
    )
    assert np.corrcoef(words, degraded_truth(t, length=words, length_dose=-1))[0, 1] < -0.6
    favoured = degraded_truth(t, own=own, own_dose=2)
    assert favoured[own].mean() - favoured[~own].mean() == pytest.approx(2, abs=0.1)
    assert (degraded_truth(t, noise=1, seed=5) == degraded_truth(t, noise=1, seed=5)).all()


def test_a_biased_metric_gets_a_report_of_what_is_missing():
    t, m, u = study()
    found = metric_needs(prr_parts(t, m, u), 400, unit_sd=1.2)
    assert (found.better, found.worse) == ("good", "fair") and found.required > found.correlation
    assert "must correlate with the truth by 0.9" in needs_sentence(found, "rouge")
    perfect = metric_needs(prr_parts(t, t, u), 400, unit_sd=1.2)
    assert perfect.bias < 1e-6 and perfect.correlation == pytest.approx(1)
    assert "it needs" in needs_sentence(metric_needs(prr_parts(t, m, u), 20, unit_sd=1.2))


def test_regret_is_largest_where_the_metric_is_biased_and_sure():
    rows = phase_table(sizes=(100, 1000))
    worst = rows.loc[rows.groupby("n")["regret"].idxmax()]
    assert (worst["bias"] > 0.25).all() and worst["regret"].iloc[1] > 0.099
    best = rows.loc[rows.groupby("n")["regret"].idxmin()]
    assert (best["bias"] < 0).all()


def test_a_constant_metric_is_refused():
    _, _, u = study(n=50)
    with pytest.raises(ValueError, match="must both vary"):
        prr_parts(np.arange(50.0), np.ones(50), u)
