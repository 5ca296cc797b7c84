"""Rejection with a guarantee: the promise holds, and equals MAPIE's where the definitions agree."""

import json
from math import comb, e

import numpy as np
import pytest
from scipy.special import betainc

from tests.helpers.paths import ROOT
from uetrust.evaluation.inference.guarantee import (
    _betting_p,
    _binomial_p,
    _hoeffding_bentkus_p,
    _least_rejection,
    _plot_guarantee,
    expected_guarantee,
    guarantee_sentence,
    rejection_guarantee,
)

MAPIE = json.loads((ROOT / "tests" / "fixtures" / "mapie.json").read_text())


@pytest.mark.parametrize("case", MAPIE["p_values"], ids=lambda c: f"{c['risk']}-{c['n']}-{c['alpha']}")
def test_p_values_equal_those_of_mapie(case):
    risk, n, alpha = case["risk"], case["n"], case["alpha"]
    bad = round(risk * n)
    ours = _binomial_p(bad, n, alpha) if case["binary"] else _hoeffding_bentkus_p(bad, n, alpha)
    if np.ceil(n * risk) == bad:
        assert ours == pytest.approx(case["p"], rel=1e-12)
    else:  # 0.07 * 100 is above 7 in floating point, and MAPIE counts an eighth bad text
        assert ours < case["p"]
        if case["binary"]:
            assert _binomial_p(bad + 1, n, alpha) == pytest.approx(case["p"], rel=1e-12)


def mapie_data(case):
    confidence, labels = np.array(case["confidence"]), np.array(case["labels"])
    return labels, -confidence, -np.array(case["grid"])


def counted_by_mapie(bad, n):
    "1 - precision, times n, rounded up: floating point can make it one more than there are."
    return int(np.ceil(n * (1 - (n - bad) / n)))


def hoeffding(risk, n, alpha):
    "Hoeffding's limit, which is never below the exact tail of the same count."
    if risk >= alpha:
        return 1.0
    good = (1 - risk) * np.log((1 - risk) / (1 - alpha))
    return np.exp(-n * (good + (risk * np.log(risk / alpha) if risk else 0)))


@pytest.mark.parametrize("case", MAPIE["controlled"][:2], ids=lambda c: f"alpha {c['alpha']}")
def test_thresholds_and_p_values_equal_those_of_mapie_but_for_its_rounding(case):
    labels, uncertainty, grid = mapie_data(case)
    kept = [uncertainty <= t for t in grid]
    n, bad = [k.sum() for k in kept], [(1 - labels)[k].sum() for k in kept]
    theirs = [counted_by_mapie(*pair) for pair in zip(bad, n)]
    assert 0 < sum(t == b + 1 for t, b in zip(theirs, bad)) == sum(t != b for t, b in zip(theirs, bad))
    limits = [hoeffding(b / m, m, case["alpha"]) for b, m in zip(bad, n)]
    tails = _binomial_p(np.array(theirs), np.array(n), case["alpha"])
    assert np.minimum(tails, limits) == pytest.approx(case["p"], rel=1e-9)
    found = rejection_guarantee(labels, uncertainty, case["alpha"], case["delta"], thresholds=grid)
    place = int(np.flatnonzero(grid == found.threshold)[0])
    assert found.p == pytest.approx(_binomial_p(bad[place], n[place], case["alpha"]), rel=1e-12)
    last = case["grid"].index(min(case["valid"]))
    assert place == last or (place == last - 1 and theirs[place] == bad[place] + 1)


def test_mapie_begins_where_nothing_is_kept_and_then_promises_nothing():
    case = MAPIE["controlled"][2]
    labels, uncertainty, grid = mapie_data(case)
    assert case["grid"][-1] == 1 and not (-uncertainty >= 1).any() and not case["valid"]
    found = rejection_guarantee(labels, uncertainty, case["alpha"], case["delta"], thresholds=grid)
    assert found.kept > 0.8 and found.p <= case["delta"]


@pytest.mark.parametrize("case", MAPIE["conformal"], ids=lambda c: f"alpha {c['alpha']}")
def test_conformal_thresholds_equal_those_of_mapie_between_its_grid_points(case):
    data = next(c for c in MAPIE["controlled"] if c["seed"] == case["seed"])
    labels, uncertainty, _ = mapie_data(data)
    found = expected_guarantee(labels, uncertainty, case["alpha"])
    ours = (uncertainty <= found.threshold).sum()  # Theirs is one of 41 grid points, ours an observed value
    theirs, less_cautious = (((-uncertainty) >= case["best"] - step).sum() for step in (0, 1 / 40))
    assert theirs <= ours < less_cautious


def test_the_exact_tail_is_the_sum_of_binomial_terms():
    terms = [comb(30, k) * 0.2**k * 0.8 ** (30 - k) for k in range(4)]
    assert _binomial_p(3, 30, 0.2) == pytest.approx(sum(terms), rel=1e-12)
    assert _hoeffding_bentkus_p(2.2, 30, 0.2) <= e * sum(terms)


def logistic_set(rng, n, size=1):
    "Labels whose risk grows with uncertainty; texts of one document share both."
    u = rng.random(n // size)
    bad = rng.random(n // size) < u**2 / 2
    return ~np.repeat(bad, size), np.repeat(u, size), np.repeat(np.arange(n // size), size)


def share_broken(draws, make, alpha=0.1, **options):
    rng, found = np.random.default_rng(29), []
    for _ in range(draws):
        q, u, documents = make(rng)
        clusters = documents if options.get("clustered") else None
        t = rejection_guarantee(q, u, alpha, options.get("delta", 0.1), document=clusters, steps=20).threshold
        found.append(t**2 / 6 > alpha)  # False where nothing is promised
    return np.mean(found)


@pytest.mark.parametrize("delta", [0.05, 0.2])
def test_the_promise_is_broken_in_at_most_delta_of_a_thousand_sets(delta):
    broken = share_broken(1000, lambda rng: logistic_set(rng, 250), alpha=0.12, delta=delta)
    assert 0 < broken <= delta + 2 * np.sqrt(delta * (1 - delta) / 1000)


def test_documents_must_be_known():
    def make(rng):
        return logistic_set(rng, 960, size=8)

    error = np.sqrt(0.1 * 0.9 / 200)
    assert share_broken(200, make, clustered=True) <= 0.1 + 2 * error
    assert share_broken(200, make) > 0.1 + 2 * error


def test_a_betting_p_value_is_below_alpha_as_rarely_as_it_says():
    rng = np.random.default_rng(30)
    p = np.array([_betting_p(rng.beta(0.3, 0.7, 80), 0.3) for _ in range(1000)])
    assert (p <= 0.1).mean() <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 1000)
    assert (np.array([_betting_p(rng.beta(0.3, 2.7, 80), 0.3) for _ in range(100)]) < 0.1).mean() > 0.9


def test_a_perfect_order_rejects_what_the_bound_says_and_no_less():
    rng = np.random.default_rng(31)
    risk = (rng.random(2000) < 0.3).astype(float)
    kept = np.cumsum(np.sort(risk)) / np.arange(1, 2001) <= 0.1
    assert 1 - kept.mean() == pytest.approx(_least_rejection(risk.mean(), 0.1), abs=1 / 2000)


def test_one_text_for_each_document_is_the_same_as_no_documents():
    rng = np.random.default_rng(32)
    q, u, documents = logistic_set(rng, 300)
    assert rejection_guarantee(q, u, document=documents) == rejection_guarantee(q, u)


def test_missing_values_are_left_out_with_their_documents():
    rng = np.random.default_rng(33)
    q, u, documents = logistic_set(rng, 300, size=3)
    gaps = np.append(q.astype(float), [np.nan, 1]), np.append(u, [0.1, np.nan]), np.append(documents, [7, 8])
    assert rejection_guarantee(*gaps[:2], 0.2, document=gaps[2]) == rejection_guarantee(
        q, u, 0.2, document=documents
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(alpha=0), "alpha must lie between 0 and 1, got 0"),
        (dict(delta=1.5), "delta must lie between 0 and 1, got 1.5"),
        (dict(scale=(0, 0.5)), "scale 0 to 0.5, found 1"),
        (dict(bound="exact"), "bound must be one of"),
        (dict(bound="binomial", tau=None, document=np.arange(60) // 2), "'binomial'"),
    ],
)
def test_a_wrong_argument_is_named(options, message):
    u = np.arange(60.0)
    with pytest.raises(ValueError, match=message):
        rejection_guarantee(u < 50, u, **options)


def test_the_sentence_says_when_nothing_can_be_promised():
    found = rejection_guarantee([1, 0, 1, 1], [0.1, 0.9, 0.3, 0.2])
    assert "Nothing can be promised with msp from 4 texts" in guarantee_sentence(found, "msp")
    assert "at least 75 must be kept" in found.note


def test_a_sum_of_risks_that_is_whole_but_for_rounding_counts_as_the_whole_number():
    total = sum([0.1] * 10_000)
    assert 1000 < total < 1000 + 1e-9
    assert _hoeffding_bentkus_p(total, 10_000, 0.11) == pytest.approx(
        _hoeffding_bentkus_p(1000, 10_000, 0.11), rel=1e-9
    )
    assert _hoeffding_bentkus_p(1000.001, 10_000, 0.11) > 1.01 * _hoeffding_bentkus_p(1000, 10_000, 0.11)


def test_the_plot_shades_from_the_observed_risk_to_its_limit_over_the_share_kept():
    from matplotlib.pyplot import close, subplots

    quality, uncertainty = np.repeat([1.0, 0.0], [45, 5]), np.arange(50)
    ax = subplots()[1]
    _plot_guarantee(quality, uncertainty, rejection_guarantee(quality, uncertainty, 0.2), ax)
    (area,) = ax.collections
    corners = area.get_paths()[0].vertices
    x, risk = ax.lines[0].get_data()
    assert x == pytest.approx(np.arange(1, 51) / 50) and set(corners[:, 0]) == set(x)
    assert corners[corners[:, 0] == 1, 1].min() == risk[-1] == 0.1
    # The limit of 5 bad texts of 50 is the risk at which at most so many have a probability of 1 in 10
    limit = corners[corners[:, 0] == 1, 1].max()
    assert sum(comb(50, k) * limit**k * (1 - limit) ** (50 - k) for k in range(6)) == pytest.approx(0.1)
    close(ax.figure)


@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-6, 1e-9])
def test_the_texts_that_are_missing_are_counted_however_small_the_risk(alpha):
    rng = np.random.default_rng(0)
    note = rejection_guarantee(rng.random(50), rng.random(50), tau=0.2, alpha=alpha).note
    least = int(note.split("at least ")[1].split()[0])
    with_half_the_risk = betainc(least * (1 - alpha / 2), least * alpha / 2 + 1, 1 - alpha)
    one_less = betainc((least - 1) * (1 - alpha / 2), (least - 1) * alpha / 2 + 1, 1 - alpha)
    assert with_half_the_risk <= 0.1 < one_less
