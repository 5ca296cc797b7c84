"""Self-bias: parity with recorded values, invariances of the residual, and errors."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from uetrust.papers.narcissism import bias as bias

NAMES = list("ABCDEF")


def noise(seed=0, docs=12, generators=6, evaluators=6):
    return np.random.default_rng(seed).normal(size=(docs, generators, evaluators))


def made(scores, generators=NAMES, evaluators=NAMES):
    return bias.score_panel(scores, generators[: scores.shape[1]], evaluators[: scores.shape[2]])


def z_means(scores):
    return bias.mean_matrix(bias.standardised_scores(scores))


# Parity


@pytest.fixture
def case(oracle):
    recorded = oracle("seed_systems/narcissism_stats.json")
    scores = bias.score_panel(
        recorded["scores_doc_generator_evaluator"], recorded["generators"], recorded["evaluators"]
    )
    side = {
        k: pd.Series(np.array(recorded[f"{k}_generator_doc"]).T.ravel(), scores.index)
        for k in ("length", "human")
    }
    return recorded, scores, side, dict(zip(recorded["generators"], recorded["family"]))


def close(found, want):
    np.testing.assert_allclose(np.asarray(found, float), np.asarray(want, float), rtol=0, atol=1e-9)


def test_matrices_equal_the_recorded_ones(case):
    recorded, scores, _, _ = case
    matrix = bias.mean_matrix(scores)
    close(matrix, recorded["mean_matrix"])
    close(bias.normalised_scores(matrix), recorded["eq4_normalised_alpha1"])
    close(z_means(scores), recorded["z_mean_matrix"])
    close(bias.interaction_residual(z_means(scores)), recorded["double_centred_residual"])


def test_statistics_of_the_heat_map_equal_the_recorded_ones(case):
    recorded, scores, _, family = case
    matrix = bias.normalised_scores(bias.mean_matrix(scores))
    assert bias.self_rank(matrix).tolist() == recorded["self_rank_per_evaluator"]
    close(bias.diagonal_excess(matrix), recorded["diagonal_excess_per_evaluator"])
    close(bias.diagonal_excess(matrix).mean(), recorded["diagonal_excess_mean"])
    close(bias.family_excess(matrix, family), recorded["same_family_excess"])


def test_self_effect_permutation_and_bootstrap_equal_the_recorded_ones(case):
    recorded, scores, _, _ = case
    close(bias.self_effect(z_means(scores)), recorded["self_effect_lambda"])
    permuted = bias.permutation_test(z_means(scores))
    close(permuted.value, recorded["permutation"]["statistic_mean_diagonal_residual"])
    assert (permuted.n, permuted.exact) == (recorded["permutation"]["n_permutations"], True)
    close(permuted.p, recorded["permutation"]["p_one_sided_exact"])
    interval = bias.document_bootstrap(
        scores, draws=recorded["document_bootstrap"]["n"], seed=recorded["document_bootstrap"]["seed"]
    )
    close([interval.lo, interval.hi], recorded["document_bootstrap"]["ci95_lambda"])
    close(interval.value, recorded["self_effect_lambda"])


def test_correlations_equal_the_recorded_ones(case):
    recorded, scores, side, _ = case
    by_length = bias.evaluator_correlations(scores, side["length"])
    close(by_length["spearman"], recorded["length_spearman_pooled"])
    close(by_length["spearman_means"], recorded["length_spearman_generator_means"])
    by_human = bias.evaluator_correlations(scores, side["human"])
    for k in ("spearman", "kendall"):
        close(by_human[k], [value[k] for value in recorded["human_correlation_pooled"]])


def test_regression_equals_the_recorded_one(case):
    recorded, scores, side, family = case
    fitted = bias.self_effect_regression(scores, dict(same_family=family), dict(length=side["length"] / 10))
    close(fitted.effects, [recorded["ols"]["self"], recorded["ols"]["same_family"]])
    close(fitted.slopes["length"], recorded["ols"]["length_slopes"])
    assert fitted.rank == recorded["ols"]["rank"]


def test_a_control_finds_nothing_where_the_recorded_effect_is(case):
    "The recorded lambda is far above the null interval of permuted labels."
    _, scores, _, _ = case
    band = bias.negative_control(scores, draws=500)
    assert band.lo < 0 < band.hi < bias.self_effect(z_means(scores)) and band.p == 1 / 501


# Invariances of the residual


@given(
    st.lists(st.floats(-50, 50), min_size=6, max_size=6),
    st.lists(st.floats(0.01, 100), min_size=6, max_size=6),
)
def test_the_scale_of_an_evaluator_changes_nothing(shift, factor):
    x = noise()
    before, after = (z_means(made(scores)) for scores in (x, x * np.array(factor) + np.array(shift)))
    close(bias.interaction_residual(before), bias.interaction_residual(after))


@given(st.lists(st.floats(-50, 50), min_size=6, max_size=6))
def test_quality_of_a_generator_changes_nothing(quality):
    z = z_means(made(noise()))
    better = z.add(pd.Series(quality, z.index), axis=0)
    close(bias.interaction_residual(z), bias.interaction_residual(better))
    close(bias.permutation_test(z)[:2], bias.permutation_test(better)[:2])


@given(st.floats(-5, 5), st.integers(2, 7), st.integers(2, 7))
def test_a_pure_diagonal_effect_is_recovered(d, g, e):
    "Also when some evaluators have no generator, or some generators no evaluator."
    names = list("ABCDEFGH")
    z = pd.DataFrame(d * np.eye(g, e), names[:g], names[:e])
    close(bias.self_effect(z), d)


def test_an_effect_in_noise_is_recovered_within_its_interval():
    "0.4 standard deviations of the noise; the effect itself widens the scores only a little."
    interval = bias.document_bootstrap(made(noise(3, docs=400) + 0.4 * np.eye(6)))
    assert abs(interval.value - 0.4) < 0.05 and interval.lo < 0.4 < interval.hi and interval.p < 0.01


def test_square_factor_is_that_of_the_definition():
    z = z_means(made(noise(5)))
    close(bias.self_effect(z), 6 / 5 * np.diag(bias.interaction_residual(z)).mean())


def test_self_effect_is_the_coefficient_of_a_regression_without_covariates():
    scores = made(noise(6) + np.eye(6))
    close(bias.self_effect_regression(scores).effects["self"], bias.self_effect(z_means(scores)))


def test_document_order_is_irrelevant():
    scores = made(noise(7))
    turned = scores.loc[np.random.default_rng(0).permutation(12)]
    words = pd.Series(np.arange(72.0), scores.index) ** 0.5
    for statistic in (
        bias.mean_matrix,
        z_means,
        lambda table: bias.evaluator_correlations(table, words),
        lambda table: bias.self_effect_regression(table, covariates=dict(n=words)).slopes,
    ):
        pd.testing.assert_frame_equal(
            statistic(scores), statistic(turned).loc[statistic(scores).index], rtol=0, atol=1e-9
        )
    rows = scores.sample(frac=1, random_state=0)
    close(
        bias.self_effect_regression(scores, covariates=dict(n=words)).slopes,
        bias.self_effect_regression(rows, covariates=dict(n=words)).slopes,
    )
    close(bias.evaluator_correlations(scores, words), bias.evaluator_correlations(rows, words))
    close(bias.self_effect(z_means(scores)), bias.self_effect(z_means(rows)))
    close(
        bias.mean_interval(bias.score_array(scores).mean(1)).value,
        bias.mean_interval(bias.score_array(rows).mean(1)).value[
            [rows.columns.get_loc(column) for column in scores.columns]
        ],
    )


def test_renamed_order_of_models_is_irrelevant():
    "Rows in another order than columns: own cells are found by name."
    matrix = bias.mean_matrix(made(noise(8)))
    mixed = matrix.loc[list("FADBCE"), list("CBADFE")]
    assert bias.self_rank(mixed).sort_index().equals(bias.self_rank(matrix))
    close(bias.diagonal_excess(mixed)[NAMES], bias.diagonal_excess(matrix))
    close(bias.permutation_test(mixed)[:2], bias.permutation_test(matrix)[:2])


# Permutations


def test_permutation_p_is_uniform_without_an_effect():
    p_values = np.array(
        [
            bias.permutation_test(z_means(made(noise(i, docs=2, generators=5, evaluators=5)))).p
            for i in range(300)
        ]
    )
    assert (
        abs(p_values.mean() - 0.5) < 0.05
        and 0.02 <= (p_values <= 0.05).mean() <= 0.08
        and 0.43 < (p_values <= 0.5).mean() < 0.57
    )


def test_within_families_own_family_is_no_evidence_and_own_model_is():
    names = [f"{f}{i}" for f in "ab" for i in range(3)]
    family = {n: n[0] for n in names}
    clan = pd.DataFrame(np.kron(np.eye(2), np.ones((3, 3))), names, names)
    assert bias.permutation_test(clan).p == 36 / 720 and bias.permutation_test(clan, family).p == 1
    own = clan + np.eye(6)
    assert bias.permutation_test(own, family) == (bias.permutation_test(own).value, 1 / 36, 36, True)


def test_drawn_matchings_approach_all_matchings():
    z = z_means(made(noise(11) + 0.25 * np.eye(6)))
    exact = bias.permutation_test(z).p
    keep, bias.MAX_EXACT_MATCHINGS = bias.MAX_EXACT_MATCHINGS, 1
    try:
        drawn = bias.permutation_test(z)
    finally:
        bias.MAX_EXACT_MATCHINGS = keep
    assert (
        not drawn.exact
        and drawn.n == 10_000
        and abs(drawn.p - exact) < 0.015
        and drawn.p * 10_001 == pytest.approx(round(drawn.p * 10_001))
    )


def test_drawn_matchings_stay_within_families():
    labels = [0] * 9 + [1] * 2
    perms, exact = bias._matchings([np.arange(9), np.arange(9, 11)], 50, 0)
    assert (
        not exact and (np.array(labels)[perms] == labels).all() and (np.sort(perms, 1) == np.arange(11)).all()
    )


def test_evaluators_without_a_generator_have_no_diagonal():
    scores = made(noise(12, evaluators=8), evaluators=[*NAMES, "X", "Y"])
    matrix = bias.mean_matrix(scores)
    assert (
        bias.self_rank(matrix).index.tolist() == NAMES == bias.by_evaluator(scores, draws=20).index.tolist()
    )
    assert bias.permutation_test(z_means(scores)).n == 720
    assert list(bias.double_difference(scores, scores["A"].rename(None), draws=20).index) == NAMES


def test_two_evaluators_may_claim_one_generator():
    "The coefficient of any claim is that of least squares."
    z = z_means(made(noise(13)))
    claim = dict(A="C", B="C", D="E")
    mine = bias.own_cells(z, claim)
    dummies = [
        np.broadcast_to(dummy, (6, 6)).ravel()
        for dummy in (*np.eye(6)[:, None], *np.eye(6)[1:, :, None], mine)
    ]
    beta = np.linalg.lstsq(np.stack(dummies, 1).astype(float), z.to_numpy().ravel(), rcond=None)[0]
    close(bias.self_effect(z, claim), beta[-1])


# Length, quality, single evaluators


def test_length_explains_a_self_effect_that_is_only_length():
    rng = np.random.default_rng(14)
    slope = np.array([1, 1, 1, -1, -1, -1])
    long = np.array([60, 55, 50, 30, 25, 20]) + rng.integers(0, 9, (200, 6))
    scores = made(long[:, :, None] * slope / 10 + rng.normal(size=(200, 6, 6)) / 2)
    words = pd.Series(long.ravel() / 10, scores.index)
    assert bias.self_effect(z_means(scores)) > 0.2
    assert abs(bias.self_effect_regression(scores, covariates=dict(length=words)).effects["self"]) < 0.02


def test_a_covariate_and_a_group_that_are_not_separable_are_nan():
    scores = made(noise(15))
    family = dict.fromkeys(NAMES, "all")
    fitted = bias.self_effect_regression(scores, dict(same_family=family))
    assert fitted.effects.isna().all() and fitted.rank == 12 + 5 + 5 + 1
    assert bias.self_effect_regression(
        scores, dict(same_family={n: n for n in NAMES})
    ).effects.isna().tolist() == [
        False,
        True,
    ]


def test_holm_and_the_floor_of_a_single_evaluator():
    table = bias.by_evaluator(made(noise(16) + 2 * np.eye(6)), draws=99)
    assert (table["p_generators"] == 1 / 6).all() and (table["p_documents"] == 0.01).all()
    close(table["holm_documents"], 0.06)
    close(table["holm_generators"], 1)


def test_agreeing_with_people_is_no_bias():
    x = noise(17)
    scores = made(np.repeat(x[:, :, :1], 6, 2))
    differences = bias.double_difference(scores, scores["A"], draws=50)
    close(differences["difference"], 0)
    z = bias.standardised_scores(scores)["A"].unstack("generator")
    gap = [(z[name] - z.drop(columns=name).mean(axis=1)).mean() for name in NAMES]
    close(differences[["gap", "human_gap"]], np.stack([gap, gap], 1))
    close(bias.double_difference(scores, -scores["A"], draws=50)["human_gap"], -differences["gap"])
    close(bias.double_difference(scores, -scores["A"], draws=50)["difference"], 2 * differences["gap"])


def test_printed_correlations_are_ranked_and_tested():
    printed = pd.Series(np.linspace(0.5, -0.1, 7), list("abcdefg"))
    default = bias.printed_correlations(printed, 100)
    for coef in ("spearman", "kendall"):
        found = bias.printed_correlations(printed, 100, coef)
        assert (
            (found["lo"] < printed).all()
            and (printed < found["hi"]).all()
            and found["rank"].tolist() == list(range(1, 8))
            and np.isnan(found.loc["a", "holm_best"])
        )
        assert (
            (np.diff(found["holm_best"].iloc[1:]) <= 0).all()
            and found.loc["g", "holm_best"] < 0.01
            and found.loc["b", "holm_best"] > 0.05
        )
    close(
        bias.printed_correlations(printed[::-1], 100)["holm_best"].dropna()[::-1],
        default["holm_best"].dropna(),
    )
    assert (
        bias.printed_correlations(printed, 100, shared=0.8)["holm_best"].dropna()
        <= bias.printed_correlations(printed, 100)["holm_best"].dropna()
    ).all()


@pytest.mark.parametrize("shared", [0, 0.6])
def test_the_second_of_two_is_compared_with_the_best_as_the_intervals_say(shared):
    found = bias.printed_correlations(pd.Series(dict(best=0.5, other=0.3)), 60, shared=shared)
    spread = (np.arctanh(found["hi"]) - np.arctanh(found["lo"])) / 2 / stats.norm.ppf(0.975)
    variance = spread["best"] ** 2 + spread["other"] ** 2 - 2 * shared * spread.prod()
    z = (np.arctanh(0.5) - np.arctanh(0.3)) / np.sqrt(variance)
    assert found.loc["other", "holm_best"] == pytest.approx(2 * stats.norm.sf(z))


def test_kendall_p_is_that_of_scipy():
    from scipy.stats import kendalltau

    rng = np.random.default_rng(18)
    x, y = rng.normal(size=(2, 100))
    tau, p = kendalltau(x, y, method="asymptotic")
    close(bias.printed_correlations(pd.Series(dict(a=tau, b=0.9)), 100, "kendall").loc["a", "p"], p)


# Figure


def test_the_frames_of_a_heat_map_lie_around_the_cells_of_equal_names():
    matrix = pd.DataFrame([[0.1, -0.9, 0.3], [2.0, -0.001, 0.6]], ["B", "A"], ["A", "B", "C"])
    ax = bias.plot_score_matrix(matrix)
    frames = [patch.get_bbox().extents.tolist() for patch in ax.patches]
    assert frames == [[0.5, -0.5, 1.5, 0.5], [-0.5, 0.5, 0.5, 1.5]], "each around its cell's middle"
    assert {text.get_position(): text.get_text() for text in ax.texts} == {
        (0, 0): "0.10",
        (1, 0): "-0.90",
        (2, 0): "0.30",
        (0, 1): "2.00",
        (1, 1): "0.00",
        (2, 1): "0.60",
    }
    assert ax.images[0].get_clim() == (-2, 2)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["A", "B", "C"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["B", "A"]
    scores = bias.plot_score_matrix(matrix, (0, 5))
    assert scores.images[0].get_clim() == (0, 5)
    plt.close(ax.figure)
    plt.close(scores.figure)


# Errors

GAP = noise(19)
GAP[3, 2, 1] = np.nan


@pytest.mark.parametrize(
    "call, says",
    [
        (lambda: made(GAP), "document 3, generator C, evaluator B"),
        (lambda: made(np.where(np.isnan(GAP), -np.inf, GAP)), "missing or infinite"),
        (lambda: bias.score_panel(noise(), NAMES, NAMES[:5]), r"\[12, 6, 5\], got \[12, 6, 6\]"),
        (lambda: bias.standardised_scores(made(noise()).drop((4, "F"))), "document 4, generator F"),
        (
            lambda: bias.score_array(made(noise()).reset_index(drop=True)),
            r"index \['document', 'generator'\]",
        ),
        (lambda: bias.score_array(pd.concat([made(noise())] * 2)), "must occur once"),
        (
            lambda: bias.permutation_test(
                z_means(made(noise())).replace(z_means(made(noise())).iloc[0, 0], np.nan)
            ),
            "generator A, evaluator A",
        ),
        (
            lambda: bias.self_effect(pd.DataFrame(np.eye(2), ["A", "B"], ["X", "Y"])),
            "no evaluator has a cell of its own",
        ),
        (lambda: bias.self_effect(pd.DataFrame(np.ones((1, 3)), ["A"], NAMES[:3])), "needs two evaluators"),
        (
            lambda: bias.self_effect(pd.DataFrame(np.eye(2), ["A", "B"], ["A", "B"]), dict(A="B", B="B")),
            "do not share one own generator",
        ),
        (
            lambda: bias.permutation_test(
                pd.DataFrame(np.eye(2), ["A", "B"], ["A", "B"]), dict(A="a", B="b")
            ),
            "only one matching",
        ),
        (lambda: bias.self_effect_regression(made(noise()), dict(f=dict(A="a"))), "no label for B"),
        (
            lambda: bias.evaluator_correlations(made(noise()), pd.Series([1.0, 2])),
            "index \\['document', 'generator'\\]",
        ),
        (lambda: bias.mean_interval([1.0]), "at least 2"),
        (
            lambda: bias.normalised_scores(pd.DataFrame(np.ones((2, 2)), ["A", "B"], ["A", "B"])),
            "evaluator A, B gives every generator",
        ),
    ],
)
def test_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()


def test_inputs_stay_as_they_are():
    scores = made(noise(20))
    before, words = scores.copy(), pd.Series(np.arange(72.0), scores.index)
    (
        bias.by_evaluator(scores, draws=5),
        bias.negative_control(scores, draws=5),
        bias.self_effect_regression(scores, covariates=dict(n=words)),
        bias.double_difference(scores, words, draws=5),
    )
    pd.testing.assert_frame_equal(scores, before)
