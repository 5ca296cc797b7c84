"""Measures and calibration: equal to recorded outputs of other implementations, scikit-learn and brute force,
with the same properties for every entry of the registry."""

import inspect
import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.helpers.measure_cases import cases, eighths, near, samples
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.evaluation import measures, pairs
from uetrust.evaluation.calibration import (
    ece,
    geometric_mean_cut,
    isotonic_pcc,
)
from uetrust.evaluation.measures import (
    _accuracy_at_quantile,
    _force_true,
    _force_true_kept,
    _random_auprc,
    _selective_quality,
    auarc,
    augrc,
    auprc,
    aurac,
    aurc,
    base_rate,
    coverage_at_risk,
    e_aurc,
    force_true_area,
    kendall_uq,
    rpp,
    selective_accuracy,
    selective_risk,
    spearman_uq,
)
from uetrust.evaluation.pairs import acceptable_labels, auroc


def test_rank_measures_equal_lm_polygraph(ranked):
    quality, y, uncertainty, want = ranked
    got = dict(
        rpp=rpp(quality, uncertainty),
        spearman=spearman_uq(quality, uncertainty),
        kendall=kendall_uq(quality, uncertainty),
    )
    assert got == {k: near(want[f"lm_polygraph_{k}"]) for k in got}
    assert auroc(y, uncertainty) == near(want["lm_polygraph_roc_auc(u, target=1-good)"])
    assert auprc(y, uncertainty) == near(want["lm_polygraph_pr_auc(u, target=1-good)"])
    assert auprc(y, -uncertainty) == near(
        want["lm_polygraph_pr_auc(positive=0,negative=1)"]
    )  # labels and scores both negated, given 1=good


def test_selective_measures_equal_peers(ranked):
    quality, _, uncertainty, want = ranked
    got = {
        "aurc_mean(stable)": aurc(quality, uncertainty, ties="input"),
        "aurc_oracle": aurc(quality, -quality),
        "e_aurc": e_aurc(quality, uncertainty, ties="input"),
        "augrc_mean(stable)": augrc(quality, uncertainty, ties="input"),
        "augrc_trapezoid": augrc(quality, uncertainty, "trapezoid", ties="input"),
        "aurc_trapezoid(torch_uncertainty convention, stable)": aurc(
            quality, uncertainty, "trapezoid", ties="input"
        ),
        "uq_nlg_auarc(stable sort)": auarc(quality, uncertainty, ties="input"),
        "semantic_entropy_aurac": aurac(quality, uncertainty),
    }
    assert got == {k: near(want[k]) for k in got}
    at = want["semantic_entropy_accuracy_at_quantile"]
    assert _accuracy_at_quantile(quality, uncertainty, [float(p) for p in at]) == near(
        np.array(list(at.values()))
    )


def test_force_true_equals_sicf(ranked):
    quality, _, uncertainty, want = ranked
    assert _force_true_kept(len(quality), compat="sicf").tolist() == want["force_true_kept"]
    assert _force_true(quality, uncertainty, ties="input", compat="sicf") == near(
        np.array(want["force_true_curve(gold=1)"])
    )


def test_force_true_counts_equal_sicf(oracle):
    want = oracle("evaluation.json")["force_true_kept_counts"]
    assert {n: _force_true_kept(int(n), compat="sicf").tolist() for n in want} == want


CONTINUOUS = "ties_n40", "constant_ue_n20", "small_n5", "perfect", "reversed", "n2", "inf_ue"


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_cases_equal_lm_polygraph(oracle, name):
    quality, uncertainty, want = cases(oracle, "ue_metrics_continuous")[name]
    assert rpp(quality, uncertainty) == near(want["rpp"])
    assert rpp(quality, -quality) == want["rpp_oracle"] == 0
    for f, key in ((kendall_uq, "kendalltau"), (spearman_uq, "spearmanr")):
        assert value(f, quality, uncertainty) == near(float(want[key]))
    if name == "inf_ue":
        with pytest.raises(ValueError, match="finite uncertainty"):
            isotonic_pcc(quality, uncertainty)
    else:
        assert isotonic_pcc(quality, uncertainty, compat="lm_polygraph") == near(want["isotonic-pcc"])


@pytest.mark.parametrize("name", CONTINUOUS)
def test_normalised_rpp_equals_lm_polygraph(oracle, name):
    "The recorded baseline is a mean over 1000 cumulative shuffles by the legacy generator."
    quality, uncertainty, want = cases(oracle, "ue_metrics_continuous")[name]
    legacy, order, draws = np.random.RandomState(42), np.arange(len(quality)), []  # noqa: NPY002
    for _ in range(1000):
        legacy.shuffle(order)
        draws.append(rpp(quality, order))
    random = np.mean(draws)
    assert random == near(want["rpp_random_seed42_1000"])
    assert (rpp(quality, uncertainty) - random) / (rpp(quality, -quality) - random) == near(
        want["rpp_normalized"]
    )


def test_every_continuous_case_is_used(oracle):
    assert set(cases(oracle, "ue_metrics_continuous")) == {*CONTINUOUS, "constant_target"}


def test_constant_quality_is_undefined_where_lm_polygraph_gives_perfect_scores(oracle):
    quality, uncertainty, want = cases(oracle, "ue_metrics_continuous")["constant_target"]
    assert want["rpp"] == want["isotonic-pcc"] == 0
    for f in (rpp, isotonic_pcc, spearman_uq, kendall_uq):
        with pytest.raises(Undefined, match="constant quality: all 8 pairs"):
            f(quality, uncertainty)


@pytest.mark.parametrize("name", ["binary_random", "binary_ties", "binary_inf", "binary_nan_target"])
def test_binary_cases_equal_lm_polygraph(oracle, name):
    "Their target 1 means bad. Infinities, which they refuse, are ranks here; NaN is dropped."
    bad, uncertainty, want = cases(oracle, "ue_metrics_binary")[name]
    got = {
        "roc-auc": auroc(1 - bad, uncertainty),
        "pr-auc": auprc(1 - bad, uncertainty),
        "pr-auc_positive0_negative1": auprc(bad, -uncertainty),
    }
    if name == "binary_inf":
        assert all(want[k] == {"raises": "ValueError"} for k in got)
        finite = np.clip(uncertainty, -99, 99)
        want = {
            "roc-auc": auroc(1 - bad, finite),
            "pr-auc": auprc(1 - bad, finite),
            "pr-auc_positive0_negative1": auprc(bad, -finite),
        }
    assert got == {k: near(want[k]) for k in got}


def test_one_class_is_undefined_where_lm_polygraph_gives_numbers(oracle):
    bad, uncertainty, want = cases(oracle, "ue_metrics_binary")["binary_one_class"]
    assert (want["roc-auc"], want["pr-auc"], want["pr-auc_positive0_negative1"]) == ("NaN", 0, 1)
    for f in (auroc, auprc, base_rate, _random_auprc, geometric_mean_cut):
        with pytest.raises(Undefined, match="one class: all 5 summaries are acceptable"):
            f(1 - bad, uncertainty)


# ---- laws over the registry
HOW = {
    n: {}
    for n in (
        "aurc",
        "e_aurc",
        "augrc",
        "auarc",
        "aurac",
        "force_true_area",
        "spearman_uq",
        "kendall_uq",
        "rpp",
        "isotonic_pcc",
    )
} | dict(
    auroc=dict(tau=0.5),
    auprc=dict(tau=0.5),
    selective_accuracy=dict(coverage=0.4),
    coverage_at_risk=dict(risk=0.4),
    balanced_accuracy=dict(tau=0.5, cut=0.5),
    cohen_kappa=dict(tau=0.5, cut=0.5),
    ece=dict(tau=0.5, bins=4, to_confidence="complement"),
    ece_adaptive=dict(tau=0.5, bins=4, to_confidence="complement"),
    ece_debiased_sq=dict(tau=0.5, bins=2, to_confidence="complement"),
)
OURS = {n: e for n, e in reg.of("measure").items() if e.fn.__module__.startswith("uetrust.")}
RANK = sorted(
    n for n in OURS if OURS[n].fn.__module__ in (measures.__name__, pairs.__name__)
)  # depend on the order of uncertainty alone
ECE = "ece", "ece_adaptive", "ece_debiased_sq"


def value(f, quality, uncertainty, **options):
    try:
        return f(quality, uncertainty, **options)
    except Undefined:
        return math.nan


def measured(name, quality, uncertainty):
    return value(OURS[name].fn, quality, uncertainty, **HOW[name])


every, rank = (pytest.mark.parametrize("name", sorted(ns)) for ns in (OURS, RANK))


def test_no_measure_is_forgotten():
    "A measure that the laws do not know would be skipped in silence."
    assert set(HOW) == set(OURS)
    assert len(RANK) == 13


@every
def test_a_measure_says_what_it_is(name):
    e = OURS[name]
    assert e.unit and "http" in e.cite and e.sign in (-1, 1)
    assert e.needs[:2] == ("quality", "uncertainty")
    assert all(
        p.annotation is not p.empty or p.name in ("quality", "uncertainty")
        for p in inspect.signature(e.fn).parameters.values()
    )


@every
@given(x=samples, data=st.data())
def test_order_of_samples_is_irrelevant(name, x, data):
    i = data.draw(st.permutations(range(x.shape[1])))
    assert measured(name, *x[:, i]) == near(measured(name, *x))


@every
@given(x=samples)
def test_inputs_are_not_modified(name, x):
    before = x.copy()
    measured(name, *x)
    assert (x == before).all()


@every
@given(x=samples)
def test_a_measure_is_a_finite_float_or_undefined(name, x):
    try:
        got = OURS[name].fn(*x, **HOW[name])
    except Undefined:
        return
    assert type(got) is float and math.isfinite(got)


@every
@given(x=samples)
def test_missing_pairs_are_dropped(name, x):
    gaps = np.array([[np.nan, 0.5, np.nan], [0.5, np.nan, np.nan]])
    assert measured(name, *np.c_[gaps, x]) == near(measured(name, *x))


@rank
@given(x=samples, steps=st.lists(st.floats(1e-3, 1e3), min_size=9, max_size=9))
def test_monotone_transform_of_uncertainty_changes_nothing(name, x, steps):
    quality, uncertainty = x
    curve = np.cumsum(steps) - 1234
    assert measured(name, quality, curve[(8 * uncertainty).astype(int)]) == near(
        measured(name, quality, uncertainty)
    )


@rank
def test_infinite_uncertainty_is_a_rank(name):
    quality, uncertainty = np.array([0.9, 0.2, 0.4, 0.7, 0.1]), np.array([-np.inf, np.inf, 2, 1, np.inf])
    assert measured(name, quality, uncertainty) == measured(name, quality, [0, 3, 2, 1, 3])


@every
def test_infinite_quality_is_an_error(name):
    with pytest.raises(ValueError, match="quality must be finite, found infinity at position 2"):
        OURS[name].fn([0.1, 0.9, np.inf], [0.1, 0.2, 0.3], **HOW[name])


@every
def test_no_pairs_is_undefined(name):
    with pytest.raises(Undefined, match="none of 2"):
        OURS[name].fn([np.nan, 0.5], [0.5, np.nan], **HOW[name])


@pytest.mark.parametrize("name", sorted(set(OURS) - set(ECE)))
def test_constant_quality_is_undefined(name):
    with pytest.raises(Undefined, match="constant quality: all 4|one class: all 4"):
        OURS[name].fn([0.7] * 4, [0.1, 0.2, 0.3, 0.4], **HOW[name])


def flawless(name, quality, uncertainty):
    "The best uncertainty: values in the order of quality; for measures of values, quality itself"
    if name in ECE:
        return 1 - acceptable_labels(quality, 0.5)
    if name == "isotonic_pcc":
        return 1 - quality
    best = np.empty_like(uncertainty)
    best[np.argsort(-quality, kind="stable")] = np.sort(uncertainty)
    return best


@pytest.mark.parametrize("name", sorted(set(OURS) - {"ece_debiased_sq"}))
@given(x=samples)
def test_direction_the_perfect_order_is_never_worse(name, x):
    here = measured(name, *x)
    assert math.isnan(here) or OURS[name].sign * (measured(name, x[0], flawless(name, *x)) - here) >= -1e-12


@every
def test_direction_perfect_beats_reversed(name):
    quality = np.arange(8) / 8
    assert (
        OURS[name].sign
        * (
            measured(name, quality, flawless(name, quality, quality))
            - measured(name, quality, np.sort(quality))
        )
        > 0.01
    )


@given(x=samples)
def test_rank_correlations_equal_definitions(x):
    from scipy.stats import spearmanr

    quality, uncertainty = x
    assume(np.ptp(quality) and np.ptp(uncertainty))
    same = np.sign(uncertainty[:, None] - uncertainty) * np.sign(quality - quality[:, None])
    assert kendall_uq(quality, uncertainty) == near(
        same.sum()
        / np.sqrt((uncertainty[:, None] != uncertainty).sum() * (quality[:, None] != quality).sum())
    )
    assert spearman_uq(quality, uncertainty) == near(spearmanr(uncertainty, -quality).statistic)


@pytest.mark.parametrize("n", [2, 63, 64, 65, 1001])
def test_rpp_equals_counting_all_pairs(n):
    rng = np.random.default_rng(n)
    quality, uncertainty = rng.integers(0, n, n), rng.integers(0, n // 2 + 1, n)
    quality[0] += n
    assert (
        rpp(quality, uncertainty)
        == ((uncertainty[:, None] < uncertainty) & (quality[:, None] < quality)).sum() / n**2
    )


LINEAR = dict(
    aurc=aurc,
    e_aurc=e_aurc,
    augrc=augrc,
    auarc=auarc,
    force_true_area=force_true_area,
    aurc_trapezoid=lambda quality, uncertainty, **options: aurc(quality, uncertainty, "trapezoid", **options),
    augrc_trapezoid=lambda quality, uncertainty, **options: augrc(
        quality, uncertainty, "trapezoid", **options
    ),
    selective_accuracy=lambda quality, uncertainty, **options: selective_accuracy(
        quality, uncertainty, 0.5, **options
    ),
)


@pytest.mark.parametrize("name", LINEAR)
@given(pairs_=st.lists(st.tuples(eighths, st.integers(0, 1)), min_size=2, max_size=5))
def test_ties_are_averaged_over_all_their_orders(name, pairs_):
    f, (quality, uncertainty) = LINEAR[name], np.array(pairs_).T
    assume(np.ptp(quality))
    each = [
        f(quality[list(i)], uncertainty[list(i)], ties="input")
        for i in itertools.permutations(range(len(quality)))
    ]
    assert f(quality, uncertainty) == near(np.mean(each))
    sign = 1 if name in ("auarc", "selective_accuracy", "force_true_area") else -1
    assert sign * f(quality, uncertainty, ties="best") == near(max(sign * v for v in each))
    assert sign * f(quality, uncertainty, ties="worst") == near(min(sign * v for v in each))


def test_ties_by_input_follow_the_order_given():
    assert _selective_quality([1, 0, 0.5], [3, 3, 1], ties="input").tolist() == [0.5, 0.75, 0.5]
    assert _selective_quality([0, 1, 0.5], [3, 3, 1], ties="input").tolist() == [0.5, 0.25, 0.5]
    with pytest.raises(ValueError, match="ties must be one of .*got 'mean'"):
        _selective_quality([0, 1], [1, 2], ties="mean")


@given(quality=st.lists(eighths, min_size=2, max_size=12), seed=st.integers(0, 999))
def test_selective_measures_equal_definitions(quality, seed):
    "Without ties: everything from the list of the k most certain."
    quality, uncertainty = (
        np.array(quality),
        np.random.default_rng(seed).permutation(len(quality)).astype(float),
    )
    assume(np.ptp(quality))
    n, kept = len(quality), [quality[uncertainty < k] for k in range(1, len(quality) + 1)]
    mean, share = np.array([k.mean() for k in kept]), np.arange(1, n + 1) / n
    assert selective_risk(quality, uncertainty) == near(1 - mean)
    assert aurc(quality, uncertainty) == near(sum(1 - mean) / n)
    assert augrc(quality, uncertainty) == near(sum(share * (1 - mean)) / n)
    assert auarc(quality, uncertainty) == near(
        sum((a + b) / 2 for a, b in itertools.pairwise(mean)) / (n - 1)
    )
    for i, k in enumerate(kept, 1):
        assert selective_accuracy(quality, uncertainty, i / n) == near(k.mean())
    for r in (0, 0.125, 0.25, 0.5):
        assert coverage_at_risk(quality, uncertainty, r) == near(max([0, *share[mean >= 1 - r - 1e-12]]))
    cut = [np.sort(quality[uncertainty < int(round(n * (10 - i) / 10, 9) // 1)]) for i in range(11)]
    assert _force_true(quality, uncertainty, gold=0.75) == near(
        np.array([(k.sum() + (n - len(k)) * 0.75) / n for k in cut])
    )
    assert e_aurc(quality, uncertainty) == near(aurc(quality, uncertainty) - aurc(quality, -quality))


@pytest.mark.parametrize("n", [10, 100, 1000, 1906])
def test_force_true_keeps_the_exact_share(n):
    assert _force_true_kept(n).tolist() == [n * (10 - i) // 10 for i in range(11)]


@given(quality=st.lists(eighths, min_size=2, max_size=40), seed=st.integers(0, 999))
def test_aurac_equals_quantiles_of_uncertainty(quality, seed):
    quality, uncertainty = np.array(quality), np.random.default_rng(seed).normal(size=len(quality))
    assume(
        np.ptp(quality) and (len(quality) - 1) % 19 and (len(quality) - 1) % 10
    )  # where p*(N-1) is whole, numpy's quantile depends on rounding
    levels = np.linspace(0.1, 1, 20)
    assert aurac(quality, uncertainty) == near(
        sum(quality[uncertainty <= np.quantile(uncertainty, p)].mean() for p in levels)
        * (levels[1] - levels[0])
    )


def test_aurac_of_a_perfect_model_is_not_one():
    "Almost perfect: one bad summary of a thousand, found."
    assert aurac(np.r_[np.ones(999), 0], np.arange(1000)) == near(20 * 0.9 / 19, 1e-4)


@given(st.integers(2, 7), st.data())
def test_chance_level_of_average_precision_is_exact(n, data):
    bad = data.draw(st.integers(1, n - 1))
    y = np.r_[np.zeros(bad), np.ones(n - bad)]
    each = (
        [auprc(y, p) for p in itertools.permutations(range(n))]
        if n < 6
        else [auprc(np.isin(range(n), c) == 0, range(n)) for c in itertools.combinations(range(n), bad)]
    )
    assert _random_auprc(y, y) == near(np.mean(each))
    assert base_rate(y, y) == near(bad / n)
    assert _random_auprc(y, y) > base_rate(y, y)


def test_a_wrong_option_is_answered_with_the_right_ones():
    for f, options, says in (
        (
            ece,
            dict(to_confidence="log"),
            "to_confidence must be one of .'negate', 'complement', 'exp', 'minmax'",
        ),
        (ece, dict(bins=0), "bins must be a whole number"),
        (ece, dict(bins=2.5), "bins must be a whole number"),
        (isotonic_pcc, dict(compat="yes"), "None or 'lm_polygraph'"),
        (force_true_area, dict(compat="yes"), "None or 'sicf'"),
        (aurc, dict(area="sum"), "'mean', 'trapezoid'"),
        (selective_accuracy, dict(coverage=0), r"coverage must lie in \(0, 1\], got 0"),
        (selective_accuracy, dict(coverage=1.1), "got 1.1"),
        (_accuracy_at_quantile, dict(p=1.5), r"quantile levels must lie in \[0, 1\], got 1.5"),
        (_accuracy_at_quantile, dict(p=[-0.1, 0.5]), "quantile levels"),
        (aurc, dict(best=0.5), "quality reaches 1, above best=0.5"),
        (coverage_at_risk, dict(risk=0.1, best=0.5), "above best=0.5"),
    ):
        with pytest.raises(ValueError, match=says):
            f([1, 0], [-0.5, -0.2], **options)
