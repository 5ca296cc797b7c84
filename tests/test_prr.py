"""The evaluation core against recorded peers, brute force and its own identities."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from uetrust.core.checks import Undefined
from uetrust.data.loaders import back_in_place
from uetrust.evaluation.cells import Group, chance, deletions, null_sd, permuted_p, replicates, standard_error
from uetrust.evaluation.he2024 import merge_duplicates, released_prr
from uetrust.evaluation.prr import PRR, prr, prr_bootstrap, prr_difference, prr_table, rejection_curve
from uetrust.evaluation.resample import bootstrap_counts, counted_areas, leave_one_out
from uetrust.evaluation.weights import harmonic, item_weights, order_by, prefix_weight, rank_weights

AREAS = [("mean", 1.0), ("sum", 1.0), ("mean", 0.5)]
CASES = [
    "toy6",
    "continuous20",
    "tied_uncertainty50",
    "judge60_two_sentinels",
    "binary40",
    "constant10",
    "ice_coherence128",
]


def floats(x):
    return np.array([np.nan if v in (None, "NaN") else float(v) for v in x])


@pytest.fixture(scope="session")
def case(oracle):
    def load(name):
        c = oracle("evaluation.json")["prr"][name]
        return floats(c["inputs"]["quality"]), floats(c["inputs"]["uncertainty"]), c

    return load


# -- parity with recorded peers


def test_every_recorded_case_is_used(oracle):
    assert set(oracle("evaluation.json")["prr"]) == set(CASES)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("area", ["mean", "sum"])
def test_released_areas(case, name, area):
    q, u, c = case(name)
    peer = c["peers"][f"he2024_rcc_{area}"]
    got = released_prr(q, u, area)
    assert got == pytest.approx(
        (peer["ue_score"], peer["oracle_score"], peer["random_score"], peer["normalized"]),
        abs=1e-12,
        rel=1e-12,
    )
    assert prr(q, u, area=area, compat="he2024").value == got.value


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rho", [1.0, 0.5, 0.25])
def test_lm_polygraph(case, name, rho):
    "Equal without ties; with ties the peer's unstable sort lands somewhere between our worst and best order."
    q, u, c = case(name)
    peer = c["peers"].get(f"lm_polygraph_prr_{rho}")
    if int(rho * len(q)) < 2:  # 0/0 in disguise: the peer returns rounding noise
        with pytest.raises(Undefined):
            released_prr(q, u, max_rejection=rho)
        assert np.isnan(prr(q, u, max_rejection=rho).value)
    elif len(set(u)) == len(u):
        assert released_prr(q, u, max_rejection=rho).value == pytest.approx(peer["normalized"], abs=1e-12)
    else:
        g = Group(q[:, None], u[:, None], max_rejection=rho)
        scaled = [1 - (e[0, 0] - g.risk.min()) / np.ptp(g.risk) for e in g.extremes]
        assert scaled[1] - 1e-12 <= peer["ue_score"] <= scaled[0] + 1e-12


@pytest.mark.parametrize("name", [c for c in CASES if c != "constant10"])
@pytest.mark.parametrize(
    "area,rho,key",
    [
        ("mean", 1.0, "mean"),
        ("sum", 1.0, "sum"),
        ("mean", 0.5, "mean_max_rejection_0.5"),
        ("mean", 0.25, "mean_max_rejection_0.25"),
    ],
)
def test_exact_values(case, name, area, rho, key):
    q, u, c = case(name)
    e, got = c["exact"][key], prr(q, u, area=area, max_rejection=rho)
    if e["prr_tie_averaged"] is None:
        assert np.isnan(got.value) and "fewer than 2" in got.note
        return
    want = [e[k] for k in ("prr_tie_averaged", "prr_worst_tie_order", "prr_best_tie_order", "null_sd")]
    assert (got.value, got.tie_lo, got.tie_hi, got.null_sd) == pytest.approx(want, abs=1e-10)
    assert prr(q, u, area=area, max_rejection=rho, ties="best").value == pytest.approx(want[2], abs=1e-10)
    assert prr(q, u, area=area, max_rejection=rho, ties="worst").value == pytest.approx(want[1], abs=1e-10)
    if e.get("jackknife_se") is not None:
        assert got.se == pytest.approx(e["jackknife_se"], abs=1e-10)
    if e.get("leave_one_out") is not None:
        left = replicates(Group(q[:, None], u[:, None], area, max_rejection=rho))[:, 0, 0]
        np.testing.assert_allclose(left, floats(e["leave_one_out"]), atol=1e-10)


def test_constant_quality(case):
    q, u, c = case("constant10")
    assert np.isnan(prr(q, u).value) and "constant" in prr(q, u).note
    assert prr(q, u, compat="he2024").value == 0.5
    assert prr(q, u, area="sum", compat="he2024").value == 2.75


def test_continuous_cases_of_the_other_oracle(oracle):
    for c in oracle("uncertainty.json")["ue_metrics_continuous"]:
        u, q, o = floats(c["inputs"]["estimator"]), floats(c["inputs"]["target"]), c["outputs"]
        for area, key in (("mean", "rcc-auc"), ("sum", "rcc-auc_unnormalized_curve")):
            got, want = (
                released_prr(q, u, area),
                [o[key + s] for s in ("", "_oracle", "_random_seed42_1000", "_normalized")],
            )
            assert tuple(got) == pytest.approx([float(w) for w in want], abs=1e-12, rel=1e-12, nan_ok=True), (
                c["name"]
            )


def test_released_pipeline(oracle):
    for c in oracle("uncertainty.json")["released_prr_pipeline"]:
        i, o = c["inputs"], c["outputs"]
        q, u = merge_duplicates(i["input_texts"], floats(i["metric"]), floats(i["uncertainty"]))
        np.testing.assert_allclose(q, floats(o["recombined_metric"]), atol=1e-15)
        np.testing.assert_allclose(u, floats(o["recombined_uncertainty"]), atol=1e-15)
        assert tuple(released_prr(q, u)) == pytest.approx(
            [o[k] for k in ("rcc_auc", "oracle", "random_mean_seed42_1000", "prr")], abs=1e-12
        ), c["name"]


def test_released_merging(oracle):
    d = oracle("evaluation.json")["released_pipeline_nan_duplicates"]
    for ue in ("UE1", "UE2"):
        q, u = merge_duplicates(d["inputs"]["input_texts"], floats(d["inputs"]["Q"]), floats(d["inputs"][ue]))
        np.testing.assert_allclose(u, d["outputs"]["steps"][ue]["recombined_ue"], atol=1e-15)
        np.testing.assert_allclose(q, d["outputs"]["steps"][ue]["recombined_metric"], atol=1e-15)
        got = released_prr(q, u)
        s = d["outputs"]["scores"]
        assert (got.method, got.value) == pytest.approx(
            (s[f"sequence|{ue}|Q|rcc-auc"], s[f"sequence|{ue}|Q|rcc-auc_normalized"]), abs=1e-12
        )


def test_paired_and_clustered_errors(oracle):
    d = oracle("evaluation.json")
    ice = d["ice_inputs"]
    for key, want in d["prr_paired_ice"].items():
        dim, area = key.split("/")
        human, ours, theirs = (np.array(x, float) for x in ice_dimension(ice, dim))
        docs = np.repeat(np.arange(human.shape[0]), human.shape[1])
        q, a, b = human.ravel(), -ours.ravel(), -theirs.ravel()
        one, two = prr(q, a, area=area), prr(q, b, area=area)
        assert (one.value, two.value) == pytest.approx((want["prr_ice"], want["prr_unieval"]), abs=1e-8)
        assert (one.se, two.se) == pytest.approx(
            (want["jackknife_se_ice"], want["jackknife_se_unieval"]), abs=1e-8
        )
        assert one.null_sd == pytest.approx(want["null_sd"], abs=1e-10)
        assert prr_difference(q, a, b, area=area).se == pytest.approx(
            want["jackknife_se_difference"], abs=1e-8
        )
        by_doc = [prr(q, x, area=area, clusters=docs).se for x in (a, b)]
        assert by_doc == pytest.approx(
            (want["cluster_jackknife_se_ice"], want["cluster_jackknife_se_unieval"]), abs=1e-8
        )
        assert prr_difference(q, a, b, area=area, clusters=docs).se == pytest.approx(
            want["cluster_jackknife_se_difference"], abs=1e-8
        )


def ice_dimension(ice, dim):
    "Human, ICE-uniform and re-aligned UniEval scores, documents x systems"
    get = lambda k: np.array([[np.nan if v is None else v for v in row] for row in ice[k][dim]], float)
    return (
        get("human"),
        get("ice_uniform"),
        back_in_place(get("unieval_as_stored"), ice["first_summary_index"]),
    )


# -- closed forms


def test_recorded_identities(oracle):
    for n, want in oracle("evaluation.json")["prr_null"]["identities"].items():
        n, bad_first = int(n), np.r_[0.0, np.ones(int(n) - 1)]
        w = {a: rank_weights(n, a) for a in ("mean", "sum")}
        assert harmonic(n)[n] == pytest.approx(want["H_N"], rel=1e-12)
        assert ((w["mean"] - w["mean"].mean()) ** 2).sum() == pytest.approx(want["S_w_mean"], rel=1e-10)
        assert ((w["sum"] - w["sum"].mean()) ** 2).sum() == pytest.approx(want["S_w_sum"], rel=1e-10)
        assert prr(bad_first, np.arange(n)).value == pytest.approx(want["min_prr_mean"], rel=1e-10)


scores = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 5)), min_size=5, max_size=25).filter(
    lambda p: len({q for q, _ in p}) > 1
)


def split(pairs):
    return (np.array(x, float) for x in zip(*pairs))


def naive(q, u, area):
    "PRR from its definition, prefix by prefix; a tied item counts with the mean risk of its block"
    r, n = q.max() - q, len(q)

    def mean_risk(key):
        s = np.array(
            [
                np.mean([r[j] for j in range(n) if key[j] == key[i]])
                for i in sorted(range(n), key=lambda i: key[i])
            ]
        )
        return np.mean([s[:k].sum() / (k if area == "mean" else 1) for k in range(1, n + 1)])

    chance = np.mean([r.mean() * (1 if area == "mean" else k) for k in range(1, n + 1)])
    return (chance - mean_risk(u)) / (chance - mean_risk(r))


@given(scores, st.sampled_from(["mean", "sum"]))
def test_matches_the_definition(pairs, area):
    q, u = split(pairs)
    assert prr(q, u, area=area).value == pytest.approx(naive(q, u, area), abs=1e-12)


@given(scores, st.sampled_from(AREAS), st.floats(0.01, 100), st.floats(-50, 50))
def test_affine_quality_and_monotone_uncertainty_change_nothing(pairs, how, a, b):
    q, u = split(pairs)
    area, rho = how
    x, y = prr(q, u, area=area, max_rejection=rho), prr(a * q + b, np.exp(u), area=area, max_rejection=rho)
    assert (x.value, x.se, x.null_sd, x.tie_sd) == pytest.approx(
        (y.value, y.se, y.null_sd, y.tie_sd), abs=1e-9, nan_ok=True
    )


@given(scores, st.randoms(use_true_random=False))
def test_order_of_samples_is_irrelevant(pairs, rnd):
    q, u = split(pairs)
    i = list(range(len(q)))
    rnd.shuffle(i)
    x, y = prr(q, u), prr(q[i], u[i])
    assert x[:9] == pytest.approx(y[:9], abs=1e-12, nan_ok=True)


@given(scores)
def test_inputs_stay_as_they_were(pairs):
    q, u = split(pairs)
    before = q.copy(), u.copy()
    prr(q, u)
    np.testing.assert_array_equal((q, u), before)


@given(scores)
def test_sum_is_gini_and_antisymmetric(pairs):
    from scipy.stats import rankdata

    q, u = split(pairs)
    gini = np.cov(-q, rankdata(u))[0, 1] / np.cov(-q, rankdata(-q))[0, 1]
    assert prr(q, u, area="sum").value == pytest.approx(gini, abs=1e-10)
    assert prr(q, -u, area="sum").value == pytest.approx(-gini, abs=1e-10)


@given(scores)
def test_sum_of_binary_is_two_auc_minus_one(pairs):
    q, u = split(pairs)
    bad = (q <= np.median(q)).astype(int)
    if 0 < bad.sum() < len(bad):
        assert prr(1 - bad, u, area="sum").value == pytest.approx(2 * roc_auc_score(bad, u) - 1, abs=1e-10)


@given(scores)
def test_bounds_and_oracle(pairs):
    q, u = split(pairs)
    n = len(q)
    v = prr(q, u)
    assert (
        -(harmonic(n)[n] - 1) * n / (n - 1) - 1e-12
        <= v.tie_lo
        <= v.value + 1e-12
        <= v.tie_hi + 2e-12
        <= 1 + 3e-12
    )
    assert prr(q, -q).value == pytest.approx(1, abs=1e-12)


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 2)), min_size=5, max_size=6).filter(
        lambda p: len({q for q, _ in p}) > 1
    )
)
def test_ties_average_over_all_orders(pairs):
    q, u = split(pairs)
    n, w = len(q), rank_weights(len(q))
    orders = [
        p for p in itertools.permutations(range(n)) if all(u[a] <= u[b] for a, b in itertools.pairwise(p))
    ]
    e, o = -q.mean(), w @ np.sort(-q)
    every = np.array([(e - w @ -q[list(p)]) / (e - o) for p in orders])
    v = prr(q, u)
    assert (v.value, v.tie_sd, v.tie_lo, v.tie_hi) == pytest.approx(
        (every.mean(), every.std(), every.min(), every.max()), abs=1e-10
    )


# -- resampling


@given(scores, st.sampled_from(AREAS), st.sampled_from(["average", "input", "best", "worst"]))
def test_delete_one_is_exact(pairs, how, ties):
    q, u = split(pairs)
    area, rho = how
    if int(rho * (len(q) - 1)) < 2:
        return
    g = Group(q[:, None], u[:, None], area, ties, rho)
    for i, got in enumerate(replicates(g)[:, 0, 0]):
        want = prr(np.delete(q, i), np.delete(u, i), area, ties, rho).value
        assert got == pytest.approx(want, abs=1e-10, nan_ok=True)


@given(scores, st.sampled_from(AREAS), st.integers(0, 2**32 - 1))
def test_counting_equals_copying(pairs, how, seed):
    q, u = split(pairs)
    area, rho = how
    c = bootstrap_counts(len(q), 4, np.random.default_rng(seed))
    got = counted_areas(order_by(u), c, -q[:, None], area, rho)[:, 0]
    for row, a in zip(c, got):
        i = np.repeat(np.arange(len(q)), row)
        assert a == pytest.approx(
            item_weights(order_by(u[i]), rank_weights(len(i), area, rho)) @ -q[i], abs=1e-10
        )


@given(scores, st.sampled_from(AREAS))
def test_deleting_by_counting_equals_the_closed_form(pairs, how):
    q, u = split(pairs)
    area, rho = how
    if int(rho * (len(q) - 1)) < 2:
        return
    everybody = 1 - np.eye(len(q), dtype=int)
    np.testing.assert_allclose(
        counted_areas(order_by(u), everybody, q[:, None], area, rho),
        leave_one_out(order_by(u), q[:, None], area, rho),
        atol=1e-10,
    )


def test_prefix_weight_at_a_million():
    n = 1_000_000
    t = np.array([1, 2, 1000, n // 2, n])
    np.testing.assert_allclose(prefix_weight(t, n), np.cumsum(rank_weights(n))[t - 1], rtol=1e-9)


def test_clusters_of_one_equal_no_clusters():
    rng = np.random.default_rng(0)
    q, u = rng.normal(size=40), rng.integers(0, 9, 40)
    assert prr(q, u, clusters=range(40)).se == pytest.approx(prr(q, u).se, abs=1e-12)


def test_lonely_bad_item_has_no_standard_error():
    v = prr([0, 1, 1, 1, 1, 1], [3, 1, 2, 5, 4, 0])
    assert np.isnan(v.se) and np.isnan(v.lo) and "unreliable" in v.note


def test_bootstrap_error_agrees_with_jackknife():
    rng = np.random.default_rng(3)
    q = pd.DataFrame(rng.normal(size=(300, 2)), columns=["a", "b"])
    u = pd.DataFrame({"m": -q.a + rng.normal(size=300)})
    boot, se = prr_bootstrap(q, u, draws=600).std(0), prr_table(q, u).se.to_numpy()
    np.testing.assert_allclose(boot[0], se, rtol=0.12)


def test_bootstrap_is_seeded_and_clusters_move_together():
    q, u = pd.DataFrame({"q": [1.0, 2, 3, 4, 5, 6]}), pd.DataFrame({"u": [6.0, 5, 3, 4, 1, 2]})
    assert (prr_bootstrap(q, u, 20, seed=5) == prr_bootstrap(q, u, 20, seed=5)).all()
    c = bootstrap_counts(6, 50, np.random.default_rng(0), np.array([0, 0, 1, 1, 2, 2]))
    assert (c[:, ::2] == c[:, 1::2]).all() and c.sum(1).max() == 6


# -- chance


@pytest.mark.parametrize("area", ["mean", "sum"])
@pytest.mark.parametrize("u", [np.arange(6.0), np.array([0.0, 0, 1, 1, 1, 2])])
def test_null_moments_over_all_orders(area, u):
    q = np.array([0.0, 0, 1, 3, 3, 4])
    every = np.array(
        [Group(q[list(p)][:, None], u[:, None], area).value[0, 0] for p in itertools.permutations(range(6))]
    )
    g = Group(q[:, None], u[:, None], area)
    sd = np.sqrt(((g.weights - g.weights.mean()) ** 2).sum() * ((q - q.mean()) ** 2).sum() / 5) / g.gap[0]
    assert (every.mean(), every.std()) == pytest.approx((0, sd), abs=1e-12)
    if len(set(u)) == 6:
        assert null_sd(g)[0] == pytest.approx(sd, abs=1e-12)


def test_recorded_null_sd(oracle):
    "Simulated qualities of the same law: the recorded band is one draw, so 15 % apart at most."
    rng = np.random.default_rng(0)
    for row in oracle("evaluation.json")["prr_null"]["monte_carlo_error_alpha1000"]:
        if row["dist"] not in ("uniform", "normal"):
            continue
        q = getattr(rng, {"uniform": "random", "normal": "standard_normal"}[row["dist"]])(row["N"])
        for area in ("mean", "sum"):
            assert null_sd(Group(q[:, None], q[:, None], area))[0] == pytest.approx(
                row[f"{area}_null_sd"], rel=0.15
            )
            assert null_sd(Group(q[:, None], q[:, None], area))[0] / np.sqrt(1000) == pytest.approx(
                row[f"{area}_mc_sd_at_prr0"], rel=0.15
            )


def test_permutation_p_of_few_orders_is_exact():
    q, u = np.r_[np.zeros(2), np.ones(10)], np.r_[11.0, 6.5, np.arange(10)]
    w = rank_weights(12)

    def off(i, j):
        return abs(w[i] + w[j] - 2 * w.mean())

    every = [off(i, j) for i, j in itertools.permutations(range(12), 2)]
    seen = off(*np.argsort(np.argsort(u))[:2])
    assert chance(Group(q[:, None], u[:, None]))[0, 0] == pytest.approx(
        np.mean(np.array(every) >= seen - 1e-12), abs=1e-12
    )


def test_drawn_permutations_approach_the_exact_p():
    rng = np.random.default_rng(0)
    w, d = rng.random((1, 22)), np.r_[np.zeros(19), 1, 2, 4.0]
    exact = permuted_p(w, d)[0]
    drawn = permuted_p(w, d, draws=4000)[0]
    assert abs(drawn - exact) < 4 * np.sqrt(exact * (1 - exact) / 4000) and drawn != exact


def test_level_of_the_test_under_chance():
    rng = np.random.default_rng(7)
    p = prr_table(
        pd.DataFrame(rng.normal(size=(200, 40))), pd.DataFrame(rng.normal(size=(200, 40))).add_prefix("m")
    ).p
    assert 0.03 < (p < 0.05).mean() < 0.07


def test_paired_difference_finds_what_separate_errors_hide():
    rng = np.random.default_rng(0)
    q = rng.normal(size=400)
    shared = rng.normal(size=400)
    a, b = -q + 2 * shared, -q + 2 * shared + 0.3 * rng.normal(size=400)
    d = prr_difference(q, a, b)
    assert d.se < 0.5 * np.hypot(prr(q, a).se, prr(q, b).se)
    assert d.note == "paired jackknife"


def test_sparse_difference_uses_the_safe_test():
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    q, a, b = np.r_[np.zeros(5), np.ones(95)], rng.normal(size=100), rng.normal(size=100)
    d = prr_difference(q, a, b)
    w = rank_weights(100)
    t = (w[np.argsort(np.argsort(b))] - w[np.argsort(np.argsort(a))]) * (q.mean() - q)
    assert "sign-flip" in d.note and d.p == pytest.approx(
        2 * norm.sf(abs(t.sum()) / np.sqrt((t**2).sum())), abs=1e-12
    )
    assert d.p != pytest.approx(2 * norm.sf(abs(d.value) / d.se), abs=1e-3)


def test_dense_difference_uses_the_jackknife():
    from scipy.stats import norm

    rng = np.random.default_rng(0)
    q, a, b = rng.normal(size=(3, 100))
    d = prr_difference(q, a, b)
    assert d.p == pytest.approx(2 * norm.sf(abs(d.value) / d.se), abs=1e-12) and (
        d.lo,
        d.hi,
    ) == pytest.approx((d.value - 1.96 * d.se, d.value + 1.96 * d.se))


# -- tables, missing values, mistakes


def test_table_equals_single_cells_and_counts_missing_pairs():
    rng = np.random.default_rng(2)
    q = pd.DataFrame(rng.integers(1, 6, (50, 4)).astype(float)).add_prefix("q")
    u = pd.DataFrame(rng.integers(0, 12, (50, 3)).astype(float)).add_prefix("u")
    q.loc[:6, "q1"], u.loc[40:, "u2"] = np.nan, np.nan
    q["flat"] = 3.0
    t = prr_table(q, u).set_index(["method", "metric"])
    assert len(t) == 15
    for (m, k), row in t.iterrows():
        one = prr(q[k], u[m])
        assert tuple(row[list(PRR._fields[:10])]) == pytest.approx(one[:10], abs=1e-12, nan_ok=True)
        assert row.note == one.note and row.n == (q[k].notna() & u[m].notna()).sum()
    assert t.loc[("u2", "q1"), "note"].startswith("17 of 50 pairs missing")


def test_adjusted_p_counts_only_cells_that_exist():
    q = pd.DataFrame({"a": [1.0, 2, 3, 4, 5, 6], "flat": 1.0})
    t = prr_table(q, pd.DataFrame({"u": [6.0, 5, 4, 3, 2, 1]}))
    assert t.q[0] == t.p[0] and np.isnan(t.q[1])


def test_infinite_uncertainty_sorts_and_infinite_quality_is_an_error():
    assert prr([1, 2, 3, 4], [np.inf, 2, 1, -np.inf]).value == pytest.approx(1)
    with pytest.raises(ValueError, match="infinity in 'quality': 1"):
        prr([1, np.inf, 3, 4], [1, 2, 3, 4])


def test_series_join_by_name():
    q, u = pd.Series([1.0, 2, 3, 4], list("abcd")), pd.Series([1.0, 2, 3, 4], list("dcba"))
    assert prr(q, u).value == pytest.approx(1)


@pytest.mark.parametrize(
    "q,u,message",
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
def test_mistakes_are_named(q, u, message):
    with pytest.raises(ValueError, match=message):
        prr(q, u)


def test_sentinel_off_its_scale_names_the_samples():
    q = pd.DataFrame({"judge": [8.0, -1, 9]}, index=["x", "y", "z"])
    with pytest.raises(ValueError, match="y = -1"):
        prr_table(q, q.rename(columns={"judge": "u"}), scales={"judge": (1, 10)})


@pytest.mark.parametrize(
    "kw,message",
    [
        (dict(area="median"), "area must be"),
        (dict(ties="random"), "ties must be one of"),
        (dict(max_rejection=0), "max_rejection must lie"),
        (dict(compat="he2023"), "compat must be"),
        (dict(clusters=[1, 1, 2, 2]), "at least 3"),
        (dict(clusters=[1, 2]), "one label per item"),
    ],
)
def test_wrong_options_are_named(kw, message):
    with pytest.raises(ValueError, match=message):
        prr([1, 2, 3, 4], [4, 2, 3, 1], **kw)


def test_curve_holds_the_areas():
    rng = np.random.default_rng(0)
    q, u = rng.normal(size=80), rng.integers(0, 9, 80)
    c = rejection_curve(q, u)
    m = c.mean()
    assert (m["random"] - m["risk"]) / (m["random"] - m["oracle"]) == pytest.approx(
        prr(q, u).value, abs=1e-12
    )
    assert c.coverage.iloc[-1] == 1 and c.random_hi.iloc[-1] == pytest.approx(c.random_lo.iloc[-1])


def test_no_draw_depends_on_global_state():
    w, d = np.random.default_rng(0).random((2, 30)), np.r_[np.zeros(27), 1.0, 2, 3]
    np.random.seed(1)
    a = permuted_p(w, d)
    np.random.seed(2)
    assert (a == permuted_p(w, d)).all()
    state = np.random.get_state()[1].copy()
    released_prr([1, 2, 3], [3, 2, 1])
    assert (state == np.random.get_state()[1]).all()


def test_deletions_follow_the_clusters():
    g = Group(np.arange(4.0)[:, None], np.arange(4.0)[:, None], clusters=np.array([0, 0, 1, 2]))
    assert deletions(g).tolist() == [[0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
    assert deletions(Group(np.arange(4.0)[:, None], np.arange(4.0)[:, None])) is None
    assert standard_error(Group(np.arange(3.0)[:, None], np.arange(3.0)[:, None])).shape == (1, 1)
