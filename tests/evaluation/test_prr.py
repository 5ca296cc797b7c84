"""The evaluation core against recorded peers, brute force and its own identities."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t
from sklearn.metrics import roc_auc_score

import uetrust
from tests.helpers.prr_cases import AREAS, CASES, floats, scores, split
from uetrust.data.loaders import undo_sort
from uetrust.evaluation.cells import PRRCells, atanh_interval, prr_replicates
from uetrust.evaluation.multiple import benjamini_hochberg, holm
from uetrust.evaluation.prr import (
    PRR,
    prr,
    prr_bootstrap,
    prr_difference,
    prr_table,
    prr_value,
    rejection_curve,
)
from uetrust.evaluation.significance import bootstrap_interval
from uetrust.evaluation.weights import harmonic_numbers, rank_weights


# -- parity with recorded peers
def test_every_recorded_case_is_used(oracle):
    assert set(oracle("evaluation.json")["prr"]) == set(CASES)


@pytest.mark.parametrize("name", [recorded for recorded in CASES if recorded != "constant10"])
@pytest.mark.parametrize(
    "area,max_rejection,key",
    [
        ("mean", 1.0, "mean"),
        ("sum", 1.0, "sum"),
        ("mean", 0.5, "mean_max_rejection_0.5"),
        ("mean", 0.25, "mean_max_rejection_0.25"),
    ],
)
def test_exact_values(case, name, area, max_rejection, key):
    quality, uncertainty, recorded = case(name)
    exact, got = recorded["exact"][key], prr(quality, uncertainty, area=area, max_rejection=max_rejection)
    if exact["prr_tie_averaged"] is None:
        assert np.isnan(got.value) and "fewer than 2" in got.note
        return
    want = [
        exact[field] for field in ("prr_tie_averaged", "prr_worst_tie_order", "prr_best_tie_order", "null_sd")
    ]
    assert (got.value, got.tie_lo, got.tie_hi, got.null_sd) == pytest.approx(want, abs=1e-10)
    assert prr(
        quality, uncertainty, area=area, max_rejection=max_rejection, ties="best"
    ).value == pytest.approx(want[2], abs=1e-10)
    assert prr(
        quality, uncertainty, area=area, max_rejection=max_rejection, ties="worst"
    ).value == pytest.approx(want[1], abs=1e-10)
    if exact.get("jackknife_se") is not None:
        assert got.se == pytest.approx(exact["jackknife_se"], abs=1e-10)
    if exact.get("leave_one_out") is not None:
        left = prr_replicates(
            PRRCells(quality[:, None], uncertainty[:, None], area, max_rejection=max_rejection)
        )[:, 0, 0]
        np.testing.assert_allclose(left, floats(exact["leave_one_out"]), atol=1e-10)


def test_constant_quality(case):
    quality, uncertainty, recorded = case("constant10")
    assert np.isnan(prr(quality, uncertainty).value) and "constant" in prr(quality, uncertainty).note
    assert prr(quality, uncertainty, compat="he2024").value == 0.5
    assert prr(quality, uncertainty, area="sum", compat="he2024").value == 2.75


def test_paired_and_clustered_errors(oracle):
    recorded = oracle("evaluation.json")
    ice = recorded["ice_inputs"]
    for key, want in recorded["prr_paired_ice"].items():
        dim, area = key.split("/")
        human, ours, theirs = (np.array(method, float) for method in ice_dimension(ice, dim))
        docs = np.repeat(np.arange(human.shape[0]), human.shape[1])
        quality, first_method, second_method = human.ravel(), -ours.ravel(), -theirs.ravel()
        first, second = prr(quality, first_method, area=area), prr(quality, second_method, area=area)
        assert (first.value, second.value) == pytest.approx((want["prr_ice"], want["prr_unieval"]), abs=1e-8)
        assert (first.se, second.se) == pytest.approx(
            (want["jackknife_se_ice"], want["jackknife_se_unieval"]), abs=1e-8
        )
        assert first.null_sd == pytest.approx(want["null_sd"], abs=1e-10)
        assert prr_difference(quality, first_method, second_method, area=area).se == pytest.approx(
            want["jackknife_se_difference"], abs=1e-8
        )
        by_doc = [
            prr(quality, method, area=area, document=docs).se for method in (first_method, second_method)
        ]
        assert by_doc == pytest.approx(
            (want["cluster_jackknife_se_ice"], want["cluster_jackknife_se_unieval"]), abs=1e-8
        )
        assert prr_difference(
            quality, first_method, second_method, area=area, document=docs
        ).se == pytest.approx(want["cluster_jackknife_se_difference"], abs=1e-8)


def ice_dimension(ice, dim):
    "Human, ICE-uniform and re-aligned UniEval scores, documents x systems"
    get = lambda key: np.array(
        [[np.nan if value is None else value for value in row] for row in ice[key][dim]], float
    )
    return (
        get("human"),
        get("ice_uniform"),
        undo_sort(get("unieval_as_stored"), ice["first_summary_index"]),
    )


def naive(quality, uncertainty, area):
    "PRR from its definition, prefix by prefix; a tied item counts with the mean risk of its block"
    risk, n = quality.max() - quality, len(quality)

    def mean_risk(key):
        averaged = np.array(
            [
                np.mean([risk[j] for j in range(n) if key[j] == key[i]])
                for i in sorted(range(n), key=lambda i: key[i])
            ]
        )
        return np.mean([averaged[:k].sum() / (k if area == "mean" else 1) for k in range(1, n + 1)])

    chance = np.mean([risk.mean() * (1 if area == "mean" else k) for k in range(1, n + 1)])
    return (chance - mean_risk(uncertainty)) / (chance - mean_risk(risk))


@given(scores, st.sampled_from(["mean", "sum"]))
def test_matches_the_definition(pairs, area):
    quality, uncertainty = split(pairs)
    assert prr(quality, uncertainty, area=area).value == pytest.approx(
        naive(quality, uncertainty, area), abs=1e-12
    )


@given(scores, st.sampled_from(AREAS), st.floats(0.01, 100), st.floats(-50, 50))
def test_affine_quality_and_monotone_uncertainty_change_nothing(pairs, area_and_rejection, factor, shift):
    quality, uncertainty = split(pairs)
    area, max_rejection = area_and_rejection
    x, y = (
        prr(quality, uncertainty, area=area, max_rejection=max_rejection),
        prr(factor * quality + shift, np.exp(uncertainty), area=area, max_rejection=max_rejection),
    )
    assert (x.value, x.se, x.null_sd, x.tie_sd) == pytest.approx(
        (y.value, y.se, y.null_sd, y.tie_sd), abs=1e-9, nan_ok=True
    )


@given(scores, st.randoms(use_true_random=False))
def test_order_of_samples_is_irrelevant(pairs, random):
    quality, uncertainty = split(pairs)
    order = list(range(len(quality)))
    random.shuffle(order)
    x, y = prr(quality, uncertainty), prr(quality[order], uncertainty[order])
    assert x[:9] == pytest.approx(y[:9], abs=1e-12, nan_ok=True)


@given(scores)
def test_inputs_stay_as_they_were(pairs):
    quality, uncertainty = split(pairs)
    before = quality.copy(), uncertainty.copy()
    prr(quality, uncertainty)
    np.testing.assert_array_equal((quality, uncertainty), before)


@given(scores)
def test_sum_is_gini_and_antisymmetric(pairs):
    from scipy.stats import rankdata

    quality, uncertainty = split(pairs)
    gini = np.cov(-quality, rankdata(uncertainty))[0, 1] / np.cov(-quality, rankdata(-quality))[0, 1]
    assert prr(quality, uncertainty, area="sum").value == pytest.approx(gini, abs=1e-10)
    assert prr(quality, -uncertainty, area="sum").value == pytest.approx(-gini, abs=1e-10)


@given(scores)
def test_sum_of_binary_is_two_auc_minus_one(pairs):
    quality, uncertainty = split(pairs)
    bad = (quality <= np.median(quality)).astype(int)
    if 0 < bad.sum() < len(bad):
        assert prr(1 - bad, uncertainty, area="sum").value == pytest.approx(
            2 * roc_auc_score(bad, uncertainty) - 1, abs=1e-10
        )


@given(scores)
def test_bounds_and_oracle(pairs):
    quality, uncertainty = split(pairs)
    n = len(quality)
    got = prr(quality, uncertainty)
    assert (
        -(harmonic_numbers(n)[n] - 1) * n / (n - 1) - 1e-12
        <= got.tie_lo
        <= got.value + 1e-12
        <= got.tie_hi + 2e-12
        <= 1 + 3e-12
    )
    assert prr(quality, -quality).value == pytest.approx(1, abs=1e-12)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=5, max_size=6).filter(
        lambda order: len({quality for quality, _ in order}) > 1
    )
)
def test_ties_average_over_all_orders(pairs):
    quality, uncertainty = split(pairs)
    n, weights = len(quality), rank_weights(len(quality))
    orders = [
        order
        for order in itertools.permutations(range(n))
        if all(uncertainty[before] <= uncertainty[after] for before, after in itertools.pairwise(order))
    ]
    random, oracle = -quality.mean(), weights @ np.sort(-quality)
    every = np.array([(random - weights @ -quality[list(order)]) / (random - oracle) for order in orders])
    got = prr(quality, uncertainty)
    assert (got.value, got.tie_sd, got.tie_lo, got.tie_hi) == pytest.approx(
        (every.mean(), every.std(), every.min(), every.max()), abs=1e-10
    )


def test_clusters_of_one_equal_no_clusters():
    rng = np.random.default_rng(0)
    quality, uncertainty = rng.normal(size=40), rng.integers(0, 9, 40)
    assert prr(quality, uncertainty, document=range(40)).se == pytest.approx(
        prr(quality, uncertainty).se, abs=1e-12
    )


@pytest.mark.parametrize("clusters", [20_000, 150])
def test_memory_of_clusters_is_bounded(clusters):
    "Counts for 40,000 samples in 20,000 clusters would take 3.2 GB, and weights twice that."
    import tracemalloc

    rng = np.random.default_rng(0)
    quality, uncertainty, ids = *rng.normal(size=(2, 40_000)), rng.integers(clusters, size=40_000)
    tracemalloc.start()
    got = prr(quality, uncertainty, document=ids)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256e6 and got.se == pytest.approx(prr(quality, uncertainty).se, rel=0.2)


def test_lonely_bad_item_has_no_standard_error():
    got = prr([0, 1, 1, 1, 1, 1], [3, 1, 2, 5, 4, 0])
    assert np.isnan(got.se) and np.isnan(got.lo) and "unreliable" in got.note


def test_bootstrap_error_agrees_with_jackknife():
    rng = np.random.default_rng(3)
    quality = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    uncertainty = pd.DataFrame({"m": -quality.a + rng.normal(size=300)})
    boot, se = (
        prr_bootstrap(quality, uncertainty, draws=600).std(0),
        prr_table(quality, uncertainty).se.to_numpy(),
    )
    np.testing.assert_allclose(boot[0], se, rtol=0.12)


def test_level_of_the_test_under_chance():
    rng = np.random.default_rng(7)
    p = prr_table(
        pd.DataFrame(rng.normal(size=(200, 40))), pd.DataFrame(rng.normal(size=(200, 40))).add_prefix("m")
    ).p
    assert 0.03 < (p < 0.05).mean() < 0.07


def test_paired_difference_finds_what_separate_errors_hide():
    rng = np.random.default_rng(0)
    quality = rng.normal(size=400)
    shared = rng.normal(size=400)
    first, second = -quality + 2 * shared, -quality + 2 * shared + 0.3 * rng.normal(size=400)
    difference = prr_difference(quality, first, second)
    assert difference.se < 0.5 * np.hypot(prr(quality, first).se, prr(quality, second).se)
    assert difference.note == ""


def test_few_bad_texts_leave_a_difference_few_degrees_of_freedom():
    rng = np.random.default_rng(0)
    quality, first, second = np.r_[np.zeros(5), np.ones(95)], rng.normal(size=100), rng.normal(size=100)
    difference = prr_difference(quality, first, second)
    statistic = abs(difference.value) / difference.se
    assert difference.p == pytest.approx(2 * student_t.sf(statistic, 3 * (5 - 1) - 1), abs=1e-12)
    half = student_t.ppf(0.975, 11) * difference.se
    ends = difference.value - half, difference.value + half
    assert (difference.lo, difference.hi) == pytest.approx(
        ends
    ) and "sample size of the risk 5" in difference.note


@pytest.mark.parametrize("documents, free", [(None, 99), (np.arange(100) // 10, 9)])
def test_a_difference_has_the_degrees_of_freedom_of_its_texts_or_documents(documents, free):
    rng = np.random.default_rng(0)
    quality, first, second = rng.normal(size=(3, 100))
    difference = prr_difference(quality, first, second, document=documents)
    statistic = abs(difference.value) / difference.se
    assert difference.p == pytest.approx(2 * student_t.sf(statistic, free), abs=1e-12)
    half = student_t.ppf(0.975, free) * difference.se
    assert difference.hi == pytest.approx(difference.value + half)


def test_one_bad_text_leaves_a_difference_without_p():
    quality, rng = np.r_[0.0, np.ones(19)], np.random.default_rng(0)
    difference = prr_difference(quality, *rng.normal(size=(2, 20)))
    assert np.isfinite(difference.value) and np.isnan([difference.se, difference.p, difference.lo]).all()
    assert "no error can be estimated" in difference.note


# -- intervals
@pytest.mark.parametrize("share, n", [(0.02, 200), (0.05, 100), (0.1, 100)])
def test_intervals_cover_the_population_value_with_rare_errors(share, n):
    "400 studies each; the symmetric interval with 1.96, which stood here before, covers .84 to .94."
    from scipy.special import ndtri

    rng = np.random.default_rng(n)

    def errors(n, studies):  # Sorted by an uncertainty that correlates 0.6 with the true risk
        risk = 0.6 * np.sort(rng.normal(size=(n, studies)), axis=0) + 0.8 * rng.normal(size=(n, studies))
        return pd.DataFrame(-(risk > ndtri(1 - share)).astype(float))

    def table(quality):
        return prr_table(quality, pd.DataFrame({"u": np.arange(float(len(quality)))}))

    true = table(errors(500_000, 1)).value[0]
    found = table(errors(n, 400)).dropna(subset="se")
    lo, hi = atanh_interval(found.value, found.se)
    before = ((lo <= true) & (true <= hi)).mean()
    assert ((found.lo <= true) & (true <= found.hi)).mean() > max(before, 0.93)


def test_interval_stays_between_the_worst_order_and_one():
    rng = np.random.default_rng(4)
    quality = pd.DataFrame(-(rng.random((60, 50)) < 0.06).astype(float))
    found = prr_table(quality, pd.DataFrame({"u": np.arange(60.0)})).dropna(subset="se")
    reverse = [prr(column, np.argsort(np.argsort(column))).value for _, column in quality.items()]
    lowest = found.metric.map(dict(enumerate(reverse))).astype(float)
    assert (found.lo >= lowest - 1e-9).all() and (found.lo <= found.value + 1e-9).all()
    assert (found.value <= found.hi + 1e-9).all() and (found.hi <= 1 + 1e-12).all()


def test_a_perfect_order_of_few_errors_is_no_certainty():
    "Two errors of 50, both last: .025 ** (1/2); the same order of a continuous quality: almost 1."
    order = np.arange(50)
    assert prr(-(order > 47).astype(float), order).lo == pytest.approx(0.025**0.5, abs=1e-12)
    assert 0.85 < prr(-order, order).lo < prr(-order, order).hi == 1


def test_fewer_clusters_than_errors_widen_the_interval():
    rng = np.random.default_rng(5)
    quality, uncertainty = rng.normal(size=(2, 60))
    documents = np.arange(60) // 15
    cells = PRRCells(quality[:, None], uncertainty[:, None], clusters=documents)
    assert cells.interval_size == 4 < cells.effective_size
    got = prr(quality, uncertainty, document=documents)
    assert got.hi == pytest.approx(
        np.tanh(np.arctanh(got.value) + 3.1824463 * got.se / (1 - got.value**2)), abs=1e-6
    )


@pytest.mark.parametrize("uncertainty", [[1, 2, 3], [3, 2, 1], [1, 3, 2], [1, 1, 1]])
def test_three_samples_have_no_interval(uncertainty):
    got = prr([1, 2, 3], uncertainty)
    assert np.isnan([got.se, got.lo, got.hi]).all() and "3 pairs: too few" in got.note
    assert "too few" not in prr([1, 2, 3, 4], [*uncertainty, 4]).note


# -- numbers at the ends of float64
@given(scores, st.integers(-900, 900))
def test_a_power_of_two_changes_no_bit(pairs, exponent):
    quality, uncertainty = split(pairs)
    plain, scaled = prr(quality, uncertainty), prr(np.ldexp(quality, exponent), uncertainty)
    np.testing.assert_array_equal(scaled[:10], plain[:10])
    assert scaled.note == plain.note


@pytest.mark.parametrize("exponent", [-1000, -600, 600, 1000])
def test_curves_and_differences_of_any_size(exponent):
    rng = np.random.default_rng(3)
    quality, first, second = rng.random((3, 40))
    scaled = np.ldexp(quality, exponent)
    assert prr_difference(scaled, first, second) == prr_difference(quality, first, second)
    bands = rejection_curve(quality, first), rejection_curve(scaled, first)
    np.testing.assert_array_equal(bands[1].iloc[:, 1:], np.ldexp(bands[0].iloc[:, 1:], exponent))


@pytest.mark.parametrize("shift, digits", [(2.0**21, 14), (2.0**30, 14), (-(2.0**30), 14)])
def test_an_offset_that_float64_holds_changes_nothing(shift, digits):
    rng = np.random.default_rng(6)
    quality, uncertainty = rng.integers(0, 256, 50) / 256, rng.random(50)
    got, plain = prr(quality + shift, uncertainty), prr(quality, uncertainty)
    np.testing.assert_allclose(got[:9], plain[:9], rtol=10.0**-digits * 10, atol=1e-15)
    assert got.note == plain.note


@pytest.mark.parametrize("factor, shift, steps", [(1, 2.0**50, 4), (2.0**-1070, 0, 16)])
def test_missing_digits_are_reported(factor, shift, steps):
    got = prr(np.linspace(0, 1, 30) * factor + shift, np.arange(30.0))
    assert f"spans only {steps} steps of float64" in got.note
    assert "steps" not in prr(np.linspace(0, 1, 30) + 2.0**30, np.arange(30.0)).note


def test_intervals_hold_95_percent():
    "1.96 is the 97.5 % quantile of the normal distribution, 1.645 the 95 % one."
    from scipy.stats import norm

    z = norm.ppf(0.975)
    assert atanh_interval(np.array(0.0), np.array(0.1)) == pytest.approx(
        (-np.tanh(z / 10), np.tanh(z / 10)), rel=1e-4
    )
    curve = rejection_curve([1.0, 2, 4, 8, 16], [1.0, 2, 3, 4, 5])
    for kept, row in enumerate(curve.itertuples(), 1):
        means = [np.mean(some) for some in itertools.combinations(16 - np.array([1.0, 2, 4, 8, 16]), kept)]
        assert (row.random_lo, row.random_hi) == pytest.approx(
            (np.mean(means) - z * np.std(means), np.mean(means) + z * np.std(means)), rel=1e-3
        )


# -- tables, missing values, mistakes
def test_one_missing_pair_is_reported():
    quality, uncertainty = pd.Series([1.0, np.nan, 3, 4, 5]), pd.Series([5.0, 4, 3, 2, 1])
    assert prr(quality, uncertainty).note.startswith("1 of 5 pairs missing")
    assert "missing" not in prr(quality.fillna(2), uncertainty).note


def test_q_is_holm_s_by_default():
    rng = np.random.default_rng(8)
    scores = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    table = prr_table(scores[["a", "b"]], scores + 0.2 * rng.normal(size=(80, 4)))
    np.testing.assert_array_equal(table.q, holm(table.p))
    assert (benjamini_hochberg(table.p) < table.q).any()
    adjusted = prr_table(scores[["a", "b"]], scores, adjust="bh")
    np.testing.assert_array_equal(adjusted.q, benjamini_hochberg(adjusted.p))


def test_table_equals_single_cells_and_counts_missing_pairs():
    rng = np.random.default_rng(2)
    quality = pd.DataFrame(rng.integers(1, 6, (50, 4)).astype(float)).add_prefix("q")
    uncertainty = pd.DataFrame(rng.integers(0, 12, (50, 3)).astype(float)).add_prefix("u")
    quality.loc[:6, "q1"], uncertainty.loc[40:, "u2"] = np.nan, np.nan
    quality["flat"] = 3.0
    table = prr_table(quality, uncertainty).set_index(["method", "metric"])
    assert len(table) == 15
    for (method, metric), row in table.iterrows():
        single = prr(quality[metric], uncertainty[method])
        assert tuple(row[list(PRR._fields[:10])]) == pytest.approx(single[:10], abs=1e-12, nan_ok=True)
        assert (
            row.note == single.note and row.n == (quality[metric].notna() & uncertainty[method].notna()).sum()
        )
    assert table.loc[("u2", "q1"), "note"].startswith("17 of 50 pairs missing")


def test_adjusted_p_counts_only_cells_that_exist():
    quality = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "flat": 1.0})
    table = prr_table(quality, pd.DataFrame({"u": [6.0, 5, 4, 3, 2, 1]}))
    assert table.q[0] == table.p[0] and np.isnan(table.q[1])


def test_infinite_uncertainty_sorts_and_infinite_quality_is_an_error():
    assert prr([1, 2, 3, 4], [np.inf, 2, 1, -np.inf]).value == pytest.approx(1)
    with pytest.raises(ValueError, match="infinity in 'quality': 1"):
        prr([1, np.inf, 3, 4], [1, 2, 3, 4])


def test_series_join_by_name():
    quality, uncertainty = pd.Series([1.0, 2, 3, 4], list("abcd")), pd.Series([1.0, 2, 3, 4], list("dcba"))
    assert prr(quality, uncertainty).value == pytest.approx(1)


@pytest.mark.parametrize(
    "quality,uncertainty,message",
    [
        ([1, 2, 3], [1, 2], "has 3 values and uncertainty 2"),
        ([1, 2, 3], ["a", 2, 3], "'a' at position 0"),
        ([1, 2, 3], [1j, 2, 3], "complex"),
        ([[1, 2, 3]], [1, 2, 3], "shape"),
        (
            pd.Series([1.0, 2, 3], list("aab")),
            pd.Series([1.0, 2, 3], list("abc")),
            "duplicated sample names: a",
        ),
    ],
)
def test_mistakes_are_named(quality, uncertainty, message):
    with pytest.raises(ValueError, match=message):
        prr(quality, uncertainty)


def test_sentinel_off_its_scale_names_the_samples():
    quality = pd.DataFrame({"judge": [8.0, -1, 9]}, index=["x", "y", "z"])
    with pytest.raises(ValueError, match="y = -1"):
        prr_table(quality, quality.rename(columns={"judge": "u"}), scale={"judge": (1, 10)})


def test_a_scale_of_no_metric_is_named():
    quality = pd.DataFrame({"judge": [8.0, 1, 9]}, index=["x", "y", "z"])
    with pytest.raises(ValueError, match=r"scale names \['jugde'\], but quality is \['judge'\]"):
        prr_table(quality, quality.rename(columns={"judge": "u"}), scale={"jugde": (1, 10)})


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(area="median"), "area must be"),
        (dict(ties="random"), "ties must be one of"),
        (dict(max_rejection=0), "max_rejection must lie"),
        (dict(compat="he2023"), "compat must be"),
        (dict(compat="he2024", ties="best"), "compat='he2024' has its own order of ties: leave out ties"),
        (dict(document=[1, 1, 2, 2]), "at least 3"),
        (dict(document=[1, 2]), "one name per item"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        prr([1, 2, 3, 4], [4, 2, 3, 1], **options)


def test_curve_holds_the_areas():
    rng = np.random.default_rng(0)
    quality, uncertainty = rng.normal(size=80), rng.integers(0, 9, 80)
    curve = rejection_curve(quality, uncertainty)
    area = curve.mean()
    assert (area["random"] - area["risk"]) / (area["random"] - area["oracle"]) == pytest.approx(
        prr(quality, uncertainty).value, abs=1e-12
    )
    assert curve.coverage.iloc[-1] == 1 and curve.random_hi.iloc[-1] == pytest.approx(
        curve.random_lo.iloc[-1]
    )


def test_a_series_and_a_list_are_joined_by_position():
    quality, uncertainty = [0.9, 0.2, 0.6, 0.4], [0.1, 0.8, 0.3, 0.5]
    assert prr(pd.Series(quality, list("abcd")), uncertainty).value == prr(quality, uncertainty).value
    assert prr(quality, pd.Series(uncertainty, list("abcd"))).value == prr(quality, uncertainty).value


def test_a_difference_exists_when_one_uncertainty_is_constant_and_not_when_quality_is():
    quality, uncertainty = [0.9, 0.2, 0.6, 0.4, 0.7], [0.1, 0.8, 0.3, 0.5, 0.2]
    assert prr_difference(quality, uncertainty, [1.0] * 5).value == pytest.approx(
        prr(quality, uncertainty).value
    )
    assert np.isnan(prr_difference([1.0] * 5, uncertainty, uncertainty[::-1]).value)


def test_two_pairs_are_reported_as_too_few():
    assert prr([1, 2], [2, 1]).note == "2 pairs: at least 3 are needed"
    with pytest.raises(ValueError, match="at least 3 pairs, found 2"):
        rejection_curve([1, 2], [2, 1])
    assert len(rejection_curve([1, 2, 4], [3, 2, 1])) == 3


def test_a_difference_says_why_there_is_none():
    why = "needs at least 4 samples and a quality that varies"
    assert prr_difference([1.0] * 5, [1, 2, 3, 4, 5], [2, 1, 3, 4, 5]).note == why
    assert prr_difference([1, 2, 4], [1, 2, 3], [2, 1, 3]).note == why
    assert prr_difference([1, 2, 4, 8], [1, 2, 3, 4], [2, 1, 3, 4]).note != why


def test_bootstrap_draws_are_complete_when_memory_splits_them():
    quality = pd.DataFrame(dict(quality=np.arange(500_000.0) % 7))  # Four draws of these at a time
    uncertainty = pd.DataFrame(dict(msp=-quality["quality"]))
    assert prr_bootstrap(quality, uncertainty, draws=5).shape == (5, 1, 1)


def test_a_bootstrap_has_a_thousand_draws_by_default():
    quality, uncertainty = pd.DataFrame(dict(q=[1.0, 0, 1, 0])), pd.DataFrame(dict(u=[1.0, 2, 3, 4]))
    assert len(prr_bootstrap(quality, uncertainty)) == 1000


def test_a_result_prints_as_one_line_without_the_types_of_numpy():
    rng = np.random.default_rng(0)
    texts, people = pd.DataFrame(dict(q=rng.random(40))), pd.DataFrame(rng.random((5, 8)))
    scores, labels = rng.random(40), texts["q"].where(rng.random(40) < 0.7)
    results = [
        prr(texts["q"], scores),
        prr(np.ones(4), np.arange(4)),
        prr(texts["q"], np.round(scores)),
        prr_difference(texts["q"], scores, rng.random(40)),
        uetrust.prr_from_labels(labels, texts, scores),
        uetrust.prr_difference_from_labels(labels, texts, scores, rng.random(40)),
        uetrust.spearman(texts["q"], scores),
        uetrust.kendall(texts["q"], scores),
        bootstrap_interval(people, people, draws=9),
        uetrust.swap_test(people, people[::-1].to_numpy(), people, draws=9),
    ]
    for result in results:
        assert "np." not in repr(result) and "\n" not in repr(result), result
    assert repr(results[1]) == "PRR(nan, n=4, note='constant quality: there is nothing to rank')"
    found = results[0]
    assert repr(found).startswith(f"PRR({found.value:.3f}, 95% CI [{found.lo:.3f}, {found.hi:.3f}], se=")
    assert ", ties=[" in repr(results[2]) and ", ties=[" not in repr(found)


def _same(first, second):
    return all(a == b or np.isnan(a) and np.isnan(b) for a, b in zip(list(first)[:-1], list(second)[:-1]))


@pytest.mark.parametrize(
    "options",
    [
        {},
        dict(area="sum"),
        dict(ties="best"),
        dict(ties="input"),
        dict(max_rejection=0.5),
        dict(compat="he2024"),
        dict(compat="lm_polygraph_50"),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "tied", "binary", "missing", "constant", "infinite", "offset"])
def test_a_call_gives_every_bit_of_the_table(options, kind):
    "Lists, columns of one table, and Series that must be joined by sample."
    rng = np.random.default_rng(7)
    for n in (0, 1, 2, 3, 5, 40, 101):
        quality, uncertainty = rng.random(n), rng.random(n)
        if kind == "tied":
            quality, uncertainty = quality.round(1), uncertainty.round(1)
        if kind == "binary":
            quality = (quality > 0.6).astype(float)
        if kind == "missing":
            quality[rng.random(n) < 0.2] = np.nan
        if kind == "constant":
            uncertainty[:] = 1.0
        if kind == "infinite":
            uncertainty[: n // 2] = np.inf
        if kind == "offset":
            quality += 1e9
        names = [f"text {i}" for i in range(n)]
        frame = pd.DataFrame(dict(quality=quality, uncertainty=uncertainty), index=names)
        table = prr_table(frame[["quality"]], frame[["uncertainty"]], **options)
        expected = table[list(PRR._fields)].iloc[0]
        for found in (
            prr(quality, uncertainty, **options),
            prr(frame["quality"], frame["uncertainty"], **options),
            prr(frame["quality"], frame["uncertainty"][::-1], **options),
        ):
            assert found.note == expected["note"] and _same(found, expected)
        if n > 20:
            documents = pd.Series(np.arange(n) // 2, names)
            expected = prr_table(frame[["quality"]], frame[["uncertainty"]], document=documents, **options)
            for scores in (quality, uncertainty), (frame["quality"], frame["uncertainty"]):
                labels = documents if isinstance(scores[0], pd.Series) else documents.to_numpy()
                found = prr(*scores, document=labels, **options)
                assert _same(found, expected[list(PRR._fields)].iloc[0])
        if "compat" not in options:
            value = table["value"].iloc[0]
            assert _same([prr_value(quality, uncertainty, **options), ""], [value, ""])


@pytest.mark.parametrize("scale", [(0, 2), (-1, 1), (0, 1)])
def test_a_scale_whose_ends_are_reached_changes_no_field_and_no_type(scale):
    quality, uncertainty = [0.0, 0.2, 1.0, 0.4, 0.7], [0.1, 0.8, 0.3, 0.5, 0.2]
    plain, scaled = prr(quality, uncertainty), prr(quality, uncertainty, scale=scale)
    assert scaled == plain and list(map(type, scaled)) == list(map(type, plain))


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("clusters", [None, [0, 0, 1, 1, 2, 2]])
def test_a_result_has_plain_numbers_whichever_way_it_was_computed(joined, clusters):
    "So that it can be written as JSON."
    quality, uncertainty = [0.1, 0.5, 0.3, 0.9, 0.7, 0.2], [6, 2, 5, 1, 3, 4]
    if joined:
        quality, uncertainty, clusters = (x and pd.Series(x) for x in (quality, uncertainty, clusters))
    found = prr(quality, uncertainty, document=clusters)
    assert {type(value) for value in found} == {float, int, str}
