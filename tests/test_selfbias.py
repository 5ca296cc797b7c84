"""Self-bias: parity with recorded values, what the residual must not notice, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.papers.narcissism import bias as sb

NAMES = list("ABCDEF")


def noise(seed=0, docs=12, generators=6, evaluators=6):
    return np.random.default_rng(seed).normal(size=(docs, generators, evaluators))


def made(x, generators=NAMES, evaluators=NAMES):
    return sb.panel(x, generators[: x.shape[1]], evaluators[: x.shape[2]])


def z_means(scores):
    return sb.mean_matrix(sb.standardised(scores))


# Parity


@pytest.fixture
def case(oracle):
    o = oracle("seed_systems/narcissism_stats.json")
    s = sb.panel(o["scores_doc_generator_evaluator"], o["generators"], o["evaluators"])
    side = {k: pd.Series(np.array(o[f"{k}_generator_doc"]).T.ravel(), s.index) for k in ("length", "human")}
    return o, s, side, dict(zip(o["generators"], o["family"]))


def close(a, b):
    np.testing.assert_allclose(np.asarray(a, float), np.asarray(b, float), rtol=0, atol=1e-9)


def test_matrices_equal_the_recorded_ones(case):
    o, s, _, _ = case
    m = sb.mean_matrix(s)
    close(m, o["mean_matrix"])
    close(sb.normalised(m), o["eq4_normalised_alpha1"])
    close(z_means(s), o["z_mean_matrix"])
    close(sb.interaction_residual(z_means(s)), o["double_centred_residual"])


def test_readings_of_the_heat_map_equal_the_recorded_ones(case):
    o, s, _, family = case
    e = sb.normalised(sb.mean_matrix(s))
    assert sb.self_rank(e).tolist() == o["self_rank_per_evaluator"]
    close(sb.diagonal_excess(e), o["diagonal_excess_per_evaluator"])
    close(sb.diagonal_excess(e).mean(), o["diagonal_excess_mean"])
    close(sb.family_excess(e, family), o["same_family_excess"])


def test_self_effect_permutation_and_bootstrap_equal_the_recorded_ones(case):
    o, s, _, _ = case
    close(sb.self_effect(z_means(s)), o["self_effect_lambda"])
    p = sb.permutation_test(z_means(s))
    close(p.value, o["permutation"]["statistic_mean_diagonal_residual"])
    assert (p.n, p.exact) == (o["permutation"]["n_permutations"], True)
    close(p.p, o["permutation"]["p_one_sided_exact"])
    b = sb.document_bootstrap(s, draws=o["document_bootstrap"]["n"], seed=o["document_bootstrap"]["seed"])
    close([b.lo, b.hi], o["document_bootstrap"]["ci95_lambda"])
    close(b.value, o["self_effect_lambda"])


def test_correlations_equal_the_recorded_ones(case):
    o, s, side, _ = case
    c = sb.correlation(s, side["length"])
    close(c["spearman"], o["length_spearman_pooled"])
    close(c["spearman_means"], o["length_spearman_generator_means"])
    h = sb.correlation(s, side["human"])
    for k in ("spearman", "kendall"):
        close(h[k], [v[k] for v in o["human_correlation_pooled"]])


def test_regression_equals_the_recorded_one(case):
    o, s, side, family = case
    r = sb.regress(s, dict(same_family=family), dict(length=side["length"] / 10))
    close(r.effects, [o["ols"]["self"], o["ols"]["same_family"]])
    close(r.slopes["length"], o["ols"]["length_slopes"])
    assert r.rank == o["ols"]["rank"]


def test_a_control_finds_nothing_where_the_recorded_effect_is(case):
    "The recorded lambda lies far outside the band of shuffled labels, and a stranger's lambda inside its own interval."
    _, s, _, _ = case
    band = sb.negative_control(s, draws=500)
    assert band.lo < 0 < band.hi < sb.self_effect(z_means(s)) and band.p == 1 / 501


# What the residual does not notice, and what it does


@given(
    st.lists(st.floats(-50, 50), min_size=6, max_size=6),
    st.lists(st.floats(0.01, 100), min_size=6, max_size=6),
)
def test_the_scale_of_an_evaluator_changes_nothing(shift, factor):
    x = noise()
    a, b = (z_means(made(y)) for y in (x, x * np.array(factor) + np.array(shift)))
    close(sb.interaction_residual(a), sb.interaction_residual(b))


@given(st.lists(st.floats(-50, 50), min_size=6, max_size=6))
def test_quality_of_a_generator_changes_nothing(quality):
    z = z_means(made(noise()))
    better = z.add(pd.Series(quality, z.index), axis=0)
    close(sb.interaction_residual(z), sb.interaction_residual(better))
    close(sb.permutation_test(z)[:2], sb.permutation_test(better)[:2])


@given(st.floats(-5, 5), st.integers(2, 7), st.integers(2, 7))
def test_a_pure_diagonal_effect_is_recovered(d, g, e):
    "Also when some evaluators have no generator, or some generators no evaluator."
    names = list("ABCDEFGH")
    z = pd.DataFrame(d * np.eye(g, e), names[:g], names[:e])
    close(sb.self_effect(z), d)


def test_an_effect_in_noise_is_recovered_within_its_interval():
    "0.4 standard deviations of the noise; the effect itself widens the scores only a little."
    b = sb.document_bootstrap(made(noise(3, docs=400) + 0.4 * np.eye(6)))
    assert abs(b.value - 0.4) < 0.05 and b.lo < 0.4 < b.hi and b.p < 0.01


def test_square_factor_is_that_of_the_definition():
    z = z_means(made(noise(5)))
    close(sb.self_effect(z), 6 / 5 * np.diag(sb.interaction_residual(z)).mean())


def test_self_effect_is_the_coefficient_of_a_regression_without_covariates():
    s = made(noise(6) + np.eye(6))
    close(sb.regress(s).effects["self"], sb.self_effect(z_means(s)))


def test_document_order_is_irrelevant():
    s = made(noise(7))
    turned = s.loc[np.random.default_rng(0).permutation(12)]
    words = pd.Series(np.arange(72.0), s.index) ** 0.5
    for f in (
        sb.mean_matrix,
        z_means,
        lambda t: sb.correlation(t, words),
        lambda t: sb.regress(t, covariates=dict(n=words)).slopes,
    ):
        pd.testing.assert_frame_equal(f(s), f(turned).loc[f(s).index], rtol=0, atol=1e-9)
    rows = s.sample(frac=1, random_state=0)
    close(sb.regress(s, covariates=dict(n=words)).slopes, sb.regress(rows, covariates=dict(n=words)).slopes)
    close(sb.correlation(s, words), sb.correlation(rows, words))
    close(sb.self_effect(z_means(s)), sb.self_effect(z_means(rows)))
    close(
        sb.mean_interval(sb.cube(s).mean(1)).value,
        sb.mean_interval(sb.cube(rows).mean(1)).value[[rows.columns.get_loc(c) for c in s.columns]],
    )


def test_renamed_order_of_models_is_irrelevant():
    "Rows in another order than columns: own cells are found by name."
    m = sb.mean_matrix(made(noise(8)))
    mixed = m.loc[list("FADBCE"), list("CBADFE")]
    assert sb.self_rank(mixed).sort_index().equals(sb.self_rank(m))
    close(sb.diagonal_excess(mixed)[NAMES], sb.diagonal_excess(m))
    close(sb.permutation_test(mixed)[:2], sb.permutation_test(m)[:2])


# Permutations


def test_permutation_p_is_uniform_without_an_effect():
    p = np.array(
        [
            sb.permutation_test(z_means(made(noise(i, docs=2, generators=5, evaluators=5)))).p
            for i in range(300)
        ]
    )
    assert (
        abs(p.mean() - 0.5) < 0.05 and 0.02 <= (p <= 0.05).mean() <= 0.08 and 0.43 < (p <= 0.5).mean() < 0.57
    )


def test_within_families_own_family_is_no_evidence_and_own_model_is():
    names = [f"{f}{i}" for f in "ab" for i in range(3)]
    family = {n: n[0] for n in names}
    clan = pd.DataFrame(np.kron(np.eye(2), np.ones((3, 3))), names, names)
    assert sb.permutation_test(clan).p == 36 / 720 and sb.permutation_test(clan, family).p == 1
    own = clan + np.eye(6)
    assert sb.permutation_test(own, family) == (sb.permutation_test(own).value, 1 / 36, 36, True)


def test_drawn_matchings_approach_all_matchings():
    z = z_means(made(noise(11) + 0.25 * np.eye(6)))
    exact = sb.permutation_test(z).p
    keep, sb.ALL = sb.ALL, 1
    try:
        drawn = sb.permutation_test(z)
    finally:
        sb.ALL = keep
    assert (
        not drawn.exact
        and drawn.n == 10_000
        and abs(drawn.p - exact) < 0.015
        and drawn.p * 10_001 == pytest.approx(round(drawn.p * 10_001))
    )


def test_drawn_matchings_stay_within_families():
    labels = [0] * 9 + [1] * 2
    perms, exact = sb._matchings([np.arange(9), np.arange(9, 11)], 50, 0)
    assert (
        not exact and (np.array(labels)[perms] == labels).all() and (np.sort(perms, 1) == np.arange(11)).all()
    )


def test_evaluators_without_a_generator_have_no_diagonal():
    s = made(noise(12, evaluators=8), evaluators=[*NAMES, "X", "Y"])
    m = sb.mean_matrix(s)
    assert sb.self_rank(m).index.tolist() == NAMES == sb.by_evaluator(s, draws=20).index.tolist()
    assert sb.permutation_test(z_means(s)).n == 720
    assert list(sb.double_difference(s, s["A"].rename(None), draws=20).index) == NAMES


def test_two_evaluators_may_claim_one_generator():
    "The coefficient of any claim is that of least squares."
    z = z_means(made(noise(13)))
    claim = dict(A="C", B="C", D="E")
    mine = sb.own(z, claim)
    dummies = [
        np.broadcast_to(d, (6, 6)).ravel() for d in (*np.eye(6)[:, None], *np.eye(6)[1:, :, None], mine)
    ]
    beta = np.linalg.lstsq(np.stack(dummies, 1).astype(float), z.to_numpy().ravel(), rcond=None)[0]
    close(sb.self_effect(z, claim), beta[-1])


# Length, quality, single evaluators


def test_length_explains_a_self_effect_that_is_only_length():
    rng = np.random.default_rng(14)
    slope = np.array([1, 1, 1, -1, -1, -1])
    long = np.array([60, 55, 50, 30, 25, 20]) + rng.integers(0, 9, (200, 6))
    s = made(long[:, :, None] * slope / 10 + rng.normal(size=(200, 6, 6)) / 2)
    words = pd.Series(long.ravel() / 10, s.index)
    assert sb.self_effect(z_means(s)) > 0.2
    assert abs(sb.regress(s, covariates=dict(length=words)).effects["self"]) < 0.02


def test_a_covariate_and_a_group_that_are_not_separable_are_nan():
    s = made(noise(15))
    family = dict.fromkeys(NAMES, "all")
    r = sb.regress(s, dict(same_family=family))
    assert r.effects.isna().all() and r.rank == 12 + 5 + 5 + 1
    assert sb.regress(s, dict(same_family={n: n for n in NAMES})).effects.isna().tolist() == [False, True]


def test_holm_and_the_floor_of_a_single_evaluator():
    t = sb.by_evaluator(made(noise(16) + 2 * np.eye(6)), draws=99)
    assert (t["p_generators"] == 1 / 6).all() and (t["p_documents"] == 0.01).all()
    close(t["holm_documents"], 0.06)
    close(t["holm_generators"], 1)


def test_agreeing_with_people_is_no_bias():
    x = noise(17)
    s = made(np.repeat(x[:, :, :1], 6, 2))
    d = sb.double_difference(s, s["A"], draws=50)
    close(d["difference"], 0)
    z = sb.standardised(s)["A"].unstack("generator")
    gap = [(z[g] - z.drop(columns=g).mean(axis=1)).mean() for g in NAMES]
    close(d[["gap", "human_gap"]], np.stack([gap, gap], 1))
    close(sb.double_difference(s, -s["A"], draws=50)["human_gap"], -d["gap"])
    close(sb.double_difference(s, -s["A"], draws=50)["difference"], 2 * d["gap"])


def test_printed_correlations_are_ranked_and_tested():
    r = pd.Series(np.linspace(0.5, -0.1, 7), list("abcdefg"))
    t0 = sb.printed_correlations(r, 100)
    for coef in ("spearman", "kendall"):
        t = sb.printed_correlations(r, 100, coef)
        assert (
            (t["lo"] < r).all()
            and (r < t["hi"]).all()
            and t["rank"].tolist() == list(range(1, 8))
            and np.isnan(t.loc["a", "holm_best"])
        )
        assert (
            (np.diff(t["holm_best"].iloc[1:]) <= 0).all()
            and t.loc["g", "holm_best"] < 0.01
            and t.loc["b", "holm_best"] > 0.05
        )
    close(sb.printed_correlations(r[::-1], 100)["holm_best"].dropna()[::-1], t0["holm_best"].dropna())
    assert (
        sb.printed_correlations(r, 100, shared=0.8)["holm_best"].dropna()
        <= sb.printed_correlations(r, 100)["holm_best"].dropna()
    ).all()


def test_kendall_p_is_that_of_scipy():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(18)
    x, y = rng.normal(size=(2, 100))
    tau, p = kendalltau(x, y, method="asymptotic")
    close(sb.printed_correlations(pd.Series(dict(a=tau, b=0.9)), 100, "kendall").loc["a", "p"], p)


# Refusals

GAP = noise(19)
GAP[3, 2, 1] = np.nan


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: made(GAP), "document 3, generator C, evaluator B"),
        (lambda: made(np.where(np.isnan(GAP), -np.inf, GAP)), "missing or infinite"),
        (lambda: sb.panel(noise(), NAMES, NAMES[:5]), r"\[12, 6, 5\], got \[12, 6, 6\]"),
        (lambda: sb.standardised(made(noise()).drop((4, "F"))), "document 4, generator F"),
        (lambda: sb.cube(made(noise()).reset_index(drop=True)), r"index \['document', 'generator'\]"),
        (lambda: sb.cube(pd.concat([made(noise())] * 2)), "must occur once"),
        (
            lambda: sb.permutation_test(
                z_means(made(noise())).replace(z_means(made(noise())).iloc[0, 0], np.nan)
            ),
            "generator A, evaluator A",
        ),
        (
            lambda: sb.self_effect(pd.DataFrame(np.eye(2), ["A", "B"], ["X", "Y"])),
            "no evaluator has a cell of its own",
        ),
        (lambda: sb.self_effect(pd.DataFrame(np.ones((1, 3)), ["A"], NAMES[:3])), "needs two evaluators"),
        (
            lambda: sb.self_effect(pd.DataFrame(np.eye(2), ["A", "B"], ["A", "B"]), dict(A="B", B="B")),
            "do not share one own generator",
        ),
        (
            lambda: sb.permutation_test(pd.DataFrame(np.eye(2), ["A", "B"], ["A", "B"]), dict(A="a", B="b")),
            "only one matching",
        ),
        (lambda: sb.regress(made(noise()), dict(f=dict(A="a"))), "no label for B"),
        (lambda: sb.correlation(made(noise()), pd.Series([1.0, 2])), "index \\['document', 'generator'\\]"),
        (lambda: sb.mean_interval([1.0]), "at least 2"),
        (
            lambda: sb.normalised(pd.DataFrame(np.ones((2, 2)), ["A", "B"], ["A", "B"])),
            "evaluator A, B gives every generator",
        ),
    ],
)
def test_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_inputs_stay_as_they_are():
    s = made(noise(20))
    before, words = s.copy(), pd.Series(np.arange(72.0), s.index)
    (
        sb.by_evaluator(s, draws=5),
        sb.negative_control(s, draws=5),
        sb.regress(s, covariates=dict(n=words)),
        sb.double_difference(s, words, draws=5),
    )
    pd.testing.assert_frame_equal(s, before)
