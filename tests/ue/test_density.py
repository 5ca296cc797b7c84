"""Density-based methods: recorded distances of LM-Polygraph, and properties for any states."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tests.helpers.density import FULL, THIN, cloud
from uetrust.core.checks import Undefined
from uetrust.core.run import ScoreRun, compute_score
from uetrust.ue import density
from uetrust.ue.density import (
    add_jitter,
    background_gaussian,
    background_gaussian_lmp,
    mahalanobis_distance,
    md,
    md_he2024,
    rde,
    rmd,
    rmd_lmp,
    train_gaussian,
    train_gaussian_he2024,
    train_robust,
)


def mahalanobis(states, train):
    return density.mahalanobis(states, train_gaussian(train))


def mahalanobis_he2024(states, train):
    return density.mahalanobis_he2024(states, train_gaussian_he2024(train))


def background_mahalanobis(states, train):
    return density.background_mahalanobis(states, background_gaussian(train))


def background_mahalanobis_lmp(states, train):
    return density.background_mahalanobis_lmp(states, background_gaussian_lmp(train))


def robust_distance(states, train):
    return density.robust_distance(states, train_robust(train))


# Parity
@pytest.mark.parametrize("name", FULL)
def test_released_distances_and_jitter(cases, name):
    case = cases[name]
    got = mahalanobis_he2024(case.items, case.train)
    np.testing.assert_allclose(
        [md_he2024(x) for x in got], case.out["MahalanobisDistanceSeq_decoder"], rtol=1e-4
    )
    assert (
        add_jitter(np.cov(case.train, rowvar=False).astype(case.train.dtype))[1]
        == case.out["selected_jitter"]
        == 1e-15
    )
    far = background_mahalanobis_lmp(case.items, case.background)
    np.testing.assert_allclose(
        [rmd_lmp(near, away) for near, away in zip(got, far)],
        case.out["RelativeMahalanobisDistanceSeq_decoder"],
        rtol=0,
        atol=2e-4,
    )
    top, low = (
        max(got),
        min(got),
    )  # the other library's `normalize` gives a confidence among the items seen so far
    np.testing.assert_allclose(
        (top - np.array(got)) / (top - low),
        case.out["MahalanobisDistanceSeq_decoder_normalized"],
        rtol=0,
        atol=1e-4,
    )


@pytest.mark.parametrize("name", FULL)
def test_the_definition_agrees_where_the_covariance_has_an_inverse(cases, name):
    case = cases[name]
    near, far = mahalanobis(case.items, case.train), background_mahalanobis(case.items, case.background)
    assert far == mahalanobis(case.items, case.background)
    np.testing.assert_allclose([md(x) for x in near], case.out["MahalanobisDistanceSeq_decoder"], rtol=1e-4)
    states, mean, cov = (
        case.states.astype(float),
        case.train.astype(float).mean(0),
        np.cov(case.train.astype(float), rowvar=False),
    )
    np.testing.assert_allclose(
        near, [np.sqrt((x - mean) @ np.linalg.inv(cov) @ (x - mean)) for x in states], rtol=1e-9
    )
    np.testing.assert_allclose(
        [rmd(d_train, d_background) for d_train, d_background in zip(near, far)],
        np.square(near) - np.square(far),
    )


def test_with_fewer_states_than_dimensions_the_released_distance_is_that_of_the_jitter(cases):
    case = cases[THIN]
    got = np.array(mahalanobis_he2024(case.items, case.train))
    centred = case.train - case.train.mean(0)
    theirs, jitter = (
        case.out["MahalanobisDistanceSeq_decoder"],
        add_jitter(centred.T @ centred / np.float32(len(centred) - 1))[1],
    )
    assert (
        spearmanr(got, theirs).statistic > 0.9
        and abs(np.log10(jitter / case.out["selected_jitter"])) <= 1.001
    )  # rounding of the processor decides
    states, train = case.states.astype(float), case.train.astype(float)
    outside = states - train.mean(0)
    basis = np.linalg.svd(train - train.mean(0), full_matrices=False)[2][: len(train) - 1]
    np.testing.assert_allclose(
        got, np.linalg.norm(outside - outside @ basis.T @ basis, axis=1) / np.sqrt(jitter), rtol=0.1
    )  # the part without spread, over the jitter
    assert max(mahalanobis(case.items, case.train)) < 50 < min(got)


@pytest.mark.parametrize(
    "name,rtol", [("wellposed_d8", 1e-4), ("wellposed_d8_float64", 1e-6), ("small_train_n30_d5_rde", 1e-4)]
)  # the other library fits float32 states in float32
def test_robust_density(cases, name, rtol):
    case = cases[name]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The covariance matrix associated")  # 30 states in 30 components
        got = robust_distance(case.items, case.train)
    assert case.out["RDESeq_fallback_messages"] == 0
    np.testing.assert_allclose([rde(x) for x in got], case.out["RDESeq_decoder"], rtol=rtol)


# Any states
def spread(train, shrinkage=None):  # Covariance of a fit
    factor = density.fit_gaussian(train, shrinkage).factor
    return np.linalg.inv(factor @ factor.T)


@given(st.integers(0, 99), st.integers(1, 4), st.integers(6, 30))
def test_a_linear_map_of_all_states_changes_no_distance(seed, size, n):
    train, states, linear = (
        cloud(seed, n, size),
        cloud(seed + 1, 5, size),
        np.random.default_rng(seed).normal(size=(size, size)) + 3 * np.eye(size),
    )
    np.testing.assert_allclose(
        mahalanobis_distance(states @ linear + 7, train @ linear + 7),
        mahalanobis_distance(states, train),
        rtol=1e-6,
    )


@given(st.integers(0, 99), st.integers(2, 6), st.floats(0.01, 100))
def test_with_few_states_rotation_and_unit_still_change_nothing(seed, n, unit):
    train, states = cloud(seed, n, 8), cloud(seed + 1, 5, 8)
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(8, 8)))[0] * unit
    got = mahalanobis_distance(states, train)
    np.testing.assert_allclose(mahalanobis_distance(states @ rotation, train @ rotation), got, rtol=1e-6)
    assert np.isfinite(got).all()


@pytest.mark.parametrize("pooled", [1, 7])
def test_behind_a_layer_norm_the_distance_is_that_within_the_hyperplane(pooled):
    "States of a real layer norm, of one token or a mean of 7: d - 1 axes vary, and nothing is shrunk"
    torch.manual_seed(0)
    norm = torch.nn.LayerNorm(24)
    torch.nn.init.normal_(norm.weight, 1, 0.3)
    torch.nn.init.normal_(norm.bias)
    with torch.no_grad():
        states = norm(torch.randn(400, pooled, 24) @ torch.randn(24, 24)).mean(1).numpy()
    train, items = states[:350], states[350:]
    normal = 1 / norm.weight.detach().numpy().astype(float)
    assert np.ptp(states.astype(float) @ normal) < 1e-4  # They lie in the hyperplane that the weights give
    fit = density.fit_gaussian(train)
    assert fit.factor.shape == (24, 23)
    basis = np.linalg.qr(np.c_[normal, np.eye(24)[:, 1:]])[0][:, 1:]  # Coordinates within it
    within = train.astype(float) @ basis
    inverse = np.linalg.inv(np.cov(within, rowvar=False))
    centred = items.astype(float) @ basis - within.mean(0)
    want = np.sqrt(np.einsum("ij,jk,ik->i", centred, inverse, centred))
    np.testing.assert_allclose(mahalanobis(list(items), train), want, rtol=1e-6)
    outside = items[0] + 0.01 * normal
    assert md(mahalanobis([outside], train)[0]) == np.inf
    few = density.fit_gaussian(train[:20])  # Fewer states than axes are shrunk, as before
    assert few.factor.shape == (24, 24)


def test_shrinkage_goes_from_the_covariance_to_a_ball():
    train, cov = cloud(0, 50, 3, [1, 2, 3]), np.cov(cloud(0, 50, 3, [1, 2, 3]), rowvar=False)
    for shrinkage in (None, 0, 0.25, 1):
        np.testing.assert_allclose(
            spread(train, shrinkage),
            (1 - (shrinkage or 0)) * cov + (shrinkage or 0) * np.trace(cov) / 3 * np.eye(3),
            rtol=1e-10,
            atol=1e-12,
        )
    few = cloud(0, 3, 3)
    assert not np.allclose(spread(few), np.cov(few, rowvar=False), rtol=0.01) and np.trace(
        spread(few)
    ) == pytest.approx(np.trace(np.cov(few, rowvar=False)))
    biased = np.cov(few, rowvar=False, bias=True)
    mean, square = np.trace(biased) / 3, (biased**2).mean()
    np.testing.assert_allclose(
        spread(few), spread(few, min(1, (square + mean**2) / (4 * (square - mean**2 / 3)))), rtol=1e-10
    )  # the estimate for 3 states in 3 dimensions, written out
    assert np.linalg.eigvalsh(spread(np.tile(few, (9, 1))))[0] > 1e-3  # copies are no further states
    with pytest.raises(ValueError, match=r"weight in \[0,1\], got 2"):
        density.fit_gaussian(train, 2)


@given(st.integers(0, 99))
def test_order_and_copies(seed):
    train, states = cloud(seed, 40, 3), cloud(seed + 1, 4, 3)
    for method in (mahalanobis, mahalanobis_he2024):
        got = method(list(states), train)
        np.testing.assert_allclose(
            method(list(states[::-1]) + list(states), train[::-1]), got[::-1] + got, rtol=1e-4
        )


def test_robust_distance_saturates_and_follows_its_items():
    train = cloud(0, 150, 8)
    states = [np.zeros(8), np.full(8, 2.5), np.full(8, 1e3), np.full(8, -1e5)]
    squared = robust_distance(states, train)
    assert squared[0] < squared[1] and squared[2] == squared[3]  # far outside all likenesses are 0
    np.testing.assert_allclose(
        robust_distance(states[::-1] + states, train), squared[::-1] + squared, rtol=1e-9
    )


def test_robust_fit_falls_back_to_more_states(monkeypatch):
    import sklearn.covariance

    tried, Real = [], sklearn.covariance.MinCovDet

    class Broken(Real):
        def fit(self, X):
            tried.append(self.support_fraction)
            if self.support_fraction != fine:
                raise ValueError("no determinant")
            return super().fit(X)

    monkeypatch.setattr(sklearn.covariance, "MinCovDet", Broken)
    train = cloud(0, 150, 3)
    fine = 1.0
    assert np.isfinite(robust_distance(list(train[:2]), train)).all() and tried == [None, 0.9, 1.0]
    fine = "nothing"
    with pytest.raises(ValueError, match="no part of 150 training states has a covariance.*no determinant"):
        robust_distance(list(train[:2]), train)


@pytest.mark.parametrize(
    "method",
    [mahalanobis, mahalanobis_he2024, background_mahalanobis, background_mahalanobis_lmp, robust_distance],
)
def test_training_states_that_cannot_make_a_density(method):
    item = [np.zeros(3)]
    with pytest.raises(ValueError, match="at least 2 training states that differ, got 1 different of 1"):
        method(item, np.ones((1, 3)))  # the release: NaN for all
    with pytest.raises(ValueError, match="got 1 different of 4"):
        method(item, np.ones((4, 3)))
    with pytest.raises(ValueError, match="1 of 3 training states hold"):
        method(item, np.array([[1, 2, 3], [0, np.nan, 1], [4, 5, 7.0]]))
    with pytest.raises(ValueError, match=r"shape \[n,D\], got \(3,\)"):
        method(item, np.ones(3))


@pytest.mark.parametrize(
    "method,score", [(mahalanobis, md), (mahalanobis_he2024, md_he2024), (robust_distance, rde)]
)
def test_an_item_without_a_state_is_left_out_alone(method, score):
    train, item = cloud(0, 150, 3), np.ones(3)
    got = method([item, np.full(3, np.nan), item], train)
    assert got[0] == got[2] == pytest.approx(method([item], train)[0], rel=1e-9) and np.isnan(got[1])
    with pytest.raises(Undefined, match="not a number"):
        score(got[1])


def test_the_last_rung_is_taken_when_none_helps():
    assert add_jitter(np.eye(2))[1] == 1e-15 and add_jitter(-np.eye(2))[1] == 0.1
    assert np.allclose(add_jitter(-np.eye(2))[0], -0.9 * np.eye(2))


def test_a_negative_square_is_undefined(monkeypatch):
    monkeypatch.setattr(
        "uetrust.ue.density.add_jitter", lambda cov: (-cov, 0.0)
    )  # what rounding can do to a covariance without spread
    with pytest.raises(Undefined, match="square negative"):
        md_he2024(mahalanobis_he2024([np.ones(3)], cloud(0, 9, 3))[0])


def test_float32_counts_in_the_release_and_not_in_the_definition():
    train, states = cloud(0, 20, 32), cloud(1, 4, 32)
    assert (
        add_jitter(np.cov(train, rowvar=False).astype("float32"))[1]
        > 1e5 * add_jitter(np.cov(train, rowvar=False))[1]
    )
    np.testing.assert_allclose(
        mahalanobis_distance(states.astype("float32"), train.astype("float32")),
        mahalanobis_distance(states, train),
        rtol=1e-5,
    )


# A bank in shards
def drawn(seed, n):
    return dict(
        greedy_state=list(cloud(seed, n, 3)),
        greedy_logp=[np.array([-k, -1.0]) for k in np.random.default_rng(seed).exponential(size=n)],
    )


def belongs():
    return dict(
        train_states=cloud(0, 150, 3),
        background_states=cloud(1, 150, 3, 2),
        train_perplexity=np.arange(0.2, 2, 0.1),
    )


SHARDWISE = ["md", "md_he2024", "rmd", "rmd_lmp", "rde", "ppl_md", "ppl_md_lmp"]


def test_all_fits_belong_to_the_bank():
    run = ScoreRun(range(4), whole=belongs(), **drawn(2, 4))
    for name in SHARDWISE:
        compute_score(run, name)
    assert {k for k in run.whole if k not in belongs()} == {
        "train_gaussian",
        "background_gaussian",
        "train_gaussian_he2024",
        "background_gaussian_lmp",
        "train_robust",
        "train_held_out",
        "train_held_out_lmp",
    }


def test_a_second_shard_takes_no_matrix_apart(monkeypatch):
    import scipy.linalg
    import scipy.sparse.linalg

    whole, calls = belongs(), []

    def counted(name, function):
        return lambda *args, **options: calls.append(name) or function(*args, **options)

    for module in (np.linalg, scipy.linalg, scipy.sparse.linalg):
        for name in ("eigh", "eigvalsh", "eig", "inv", "pinv", "pinvh", "svd", "cholesky", "solve", "eigsh"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    per_shard = []
    for seed in (2, 3):
        run = ScoreRun(range(4), whole=whole, **drawn(seed, 4))
        for name in SHARDWISE:
            compute_score(run, name)
        per_shard.append(len(calls))
    assert per_shard[0] > 0 and per_shard[1] == per_shard[0]


def test_shards_have_the_numbers_of_the_whole():
    statistics, whole = drawn(2, 6), belongs()
    complete = ScoreRun(range(6), whole=dict(whole), **statistics)
    parts = [
        ScoreRun(
            range(3),
            whole=whole,
            **{name_of: value[start : start + 3] for name_of, value in statistics.items()},
        )
        for start in (0, 3)
    ]
    for name in SHARDWISE:
        np.testing.assert_allclose(
            [value for part in parts for value in compute_score(part, name)["value"]],
            compute_score(complete, name)["value"],
            rtol=1e-6,
            err_msg=name,
        )


def test_no_input_is_changed():
    train, background, states = cloud(0, 150, 3), cloud(1, 60, 3), list(cloud(2, 4, 3))
    run = ScoreRun(
        range(4),
        whole=dict(train_states=train, background_states=background, train_perplexity=np.arange(9.0)),
        greedy_state=states,
        greedy_logp=[np.array([-1.0, -2])] * 4,
    )
    for name in SHARDWISE:
        assert compute_score(run, name)["value"].notna().all()
    assert (
        np.array_equal(train, cloud(0, 150, 3))
        and np.array_equal(background, cloud(1, 60, 3))
        and np.array_equal(states, cloud(2, 4, 3))
    )


def test_states_that_lie_on_a_plane_are_shrunk_however_many_they_are():
    "After its last layer norm the states of BART have no variance in one direction, except for rounding."
    x = np.random.default_rng(3).normal(size=(400, 8))
    flat = (x - x.mean(1, keepdims=True)).astype("float32")
    np.testing.assert_allclose(spread(x), np.cov(x, rowvar=False), rtol=1e-10, atol=1e-12)
    assert not np.allclose(spread(flat), np.cov(flat.astype(float), rowvar=False), atol=1e-6)
    far = mahalanobis_distance(flat[:50], flat)
    assert np.isfinite(far).all() and far.max() < 10
