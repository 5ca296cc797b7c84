"""Density methods: recorded distances of LM-Polygraph, and what must hold for states of any kind."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from uetrust.core.checks import Undefined
from uetrust.core.registry import load_scores
from uetrust.core.run import Run, score
from uetrust.core.settings import oracles
from uetrust.scoring.methods import scores_needed, stored
from uetrust.ue import density, hybrid
from uetrust.ue.density import (
    background_gaussian,
    background_gaussian_lmp,
    jittered,
    mahalanobis_distance,
    mahalanobis_distance_he2024,
    md,
    md_he2024,
    rde,
    rmd,
    rmd_lmp,
    train_gaussian,
    train_gaussian_he2024,
    train_robust,
)
from uetrust.ue.hybrid import (
    held_out,
    huq,
    huq_rank,
    hybrid_ranks,
    percentile,
    ppl_md,
    ppl_md_lmp,
    train_held_out,
    train_held_out_lmp,
)

reg = load_scores()


def mahalanobis(h, t):
    return density.mahalanobis(h, train_gaussian(t))


def mahalanobis_he2024(h, t):
    return density.mahalanobis_he2024(h, train_gaussian_he2024(t))


def background_mahalanobis(h, t):
    return density.background_mahalanobis(h, background_gaussian(t))


def background_mahalanobis_lmp(h, t):
    return density.background_mahalanobis_lmp(h, background_gaussian_lmp(t))


def robust_distance(h, t):
    return density.robust_distance(h, train_robust(t))


def ppl_md_percentile(logp, known, h, t):
    return hybrid.ppl_md_percentile(logp, known, h, train_held_out(t))


def ppl_md_percentile_lmp(logp, known, h, t):
    return hybrid.ppl_md_percentile_lmp(logp, known, h, train_held_out_lmp(t, train_gaussian_he2024(t)))


FULL = ("wellposed_d8", "wellposed_d8_float64", "small_train_n30_d5_rde")
THIN = "rank_deficient_d32_n20"  # fewer states than dimensions: the peer's distances are made by its jitter


def numbers(x):
    return np.array(x, float)


class Case:
    "States and recorded outputs of one case"

    def __init__(self, c, z):
        p, x = c["inputs"]["npz_prefix"], c["inputs"]
        self.states, self.train, self.background = (
            z[p + k]
            for k in ("embeddings_decoder", "train_embeddings_decoder", "background_train_embeddings_decoder")
        )
        self.logp, self.train_perplexity = (
            x["greedy_log_likelihoods"],
            numbers([-np.mean(v) for v in x["train_greedy_log_likelihoods"]]),
        )
        self.out = {k: numbers(v) for k, v in c["outputs"].items()}

    @property
    def items(self):
        return list(self.states)


@pytest.fixture(scope="module")
def cases(oracle):
    got = oracle("uncertainty.json")["density"]
    assert {c["name"] for c in got} == {*FULL, THIN}
    z = np.load(oracles() / "uncertainty.npz")
    return {c["name"]: Case(c, z) for c in got}


# Parity
@pytest.mark.parametrize("name", FULL)
def test_released_distances_and_jitter(cases, name):
    c = cases[name]
    got = mahalanobis_he2024(c.items, c.train)
    np.testing.assert_allclose(
        [md_he2024(x) for x in got], c.out["MahalanobisDistanceSeq_decoder"], rtol=1e-4
    )
    assert (
        jittered(np.cov(c.train, rowvar=False).astype(c.train.dtype))[1] == c.out["selected_jitter"] == 1e-15
    )
    far = background_mahalanobis_lmp(c.items, c.background)
    np.testing.assert_allclose(
        [rmd_lmp(a, b) for a, b in zip(got, far)],
        c.out["RelativeMahalanobisDistanceSeq_decoder"],
        rtol=0,
        atol=2e-4,
    )
    top, low = max(got), min(got)  # the peer's `normalize` gives a confidence among the items seen so far
    np.testing.assert_allclose(
        (top - np.array(got)) / (top - low),
        c.out["MahalanobisDistanceSeq_decoder_normalized"],
        rtol=0,
        atol=1e-4,
    )


@pytest.mark.parametrize("name", FULL)
def test_the_definition_agrees_where_the_covariance_has_an_inverse(cases, name):
    c = cases[name]
    near, far = mahalanobis(c.items, c.train), background_mahalanobis(c.items, c.background)
    assert far == mahalanobis(c.items, c.background)
    np.testing.assert_allclose([md(x) for x in near], c.out["MahalanobisDistanceSeq_decoder"], rtol=1e-4)
    h, mu, S = (
        c.states.astype(float),
        c.train.astype(float).mean(0),
        np.cov(c.train.astype(float), rowvar=False),
    )
    np.testing.assert_allclose(near, [np.sqrt((x - mu) @ np.linalg.inv(S) @ (x - mu)) for x in h], rtol=1e-9)
    np.testing.assert_allclose([rmd(a, b) for a, b in zip(near, far)], np.square(near) - np.square(far))


def test_with_fewer_states_than_dimensions_the_released_distance_is_that_of_the_jitter(cases):
    c = cases[THIN]
    got = np.array(mahalanobis_he2024(c.items, c.train))
    d = c.train - c.train.mean(0)
    theirs, j = c.out["MahalanobisDistanceSeq_decoder"], jittered(d.T @ d / np.float32(len(d) - 1))[1]
    assert (
        spearmanr(got, theirs).statistic > 0.9 and abs(np.log10(j / c.out["selected_jitter"])) <= 1.001
    )  # rounding of the processor decides
    h, t = c.states.astype(float), c.train.astype(float)
    outside = h - t.mean(0)
    basis = np.linalg.svd(t - t.mean(0), full_matrices=False)[2][: len(t) - 1]
    np.testing.assert_allclose(
        got, np.linalg.norm(outside - outside @ basis.T @ basis, axis=1) / np.sqrt(j), rtol=0.1
    )  # the part without spread, over the jitter
    assert max(mahalanobis(c.items, c.train)) < 50 < min(got)


@pytest.mark.parametrize(
    "name,rtol", [("wellposed_d8", 1e-4), ("wellposed_d8_float64", 1e-6), ("small_train_n30_d5_rde", 1e-4)]
)  # the peer fits float32 states in float32
def test_robust_density(cases, name, rtol):
    c = cases[name]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The covariance matrix associated")  # 30 states in 30 components
        got = robust_distance(c.items, c.train)
    assert c.out["RDESeq_fallback_messages"] == 0
    np.testing.assert_allclose([rde(x) for x in got], c.out["RDESeq_decoder"], rtol=rtol)


@pytest.mark.parametrize("name", [*FULL, THIN])
def test_percentiles_with_perplexity(cases, name):
    c = cases[name]
    given = c.logp, c.train_perplexity, c.items, c.train
    got = [ppl_md_lmp(x) for x in ppl_md_percentile_lmp(*given)]
    known = len(
        held_out(len(c.train))[1]
    )  # a distance near that of a held-out state may fall on its other side where the jitter decides
    np.testing.assert_allclose(
        got, c.out["PPLMDSeq_decoder_MD"], rtol=0, atol=1 / known if name == THIN else 1e-12
    )
    fit, out = held_out(len(c.train))

    def relative(x, t):
        return mahalanobis_distance_he2024(x, t) - mahalanobis_distance_he2024(x, c.background)

    perplexity = numbers([-np.mean(v) for v in c.logp])
    joint = (
        percentile(perplexity, c.train_perplexity)
        + percentile(relative(c.states, c.train), relative(c.train[out], c.train[fit]))
    ) / 2
    np.testing.assert_allclose(
        joint, c.out["PPLMDSeq_decoder_RMD"], rtol=0, atol=1 / known if name == THIN else 1e-12
    )
    mine = numbers([ppl_md(x) for x in ppl_md_percentile(*given)])
    assert (0 <= mine).all() and (mine <= 1).all()
    if name == "wellposed_d8":
        assert spearmanr(mine, got).statistic > 0.99


def test_every_state_of_the_held_out_part_counts_once():
    fit, out = held_out(250)
    assert (
        len(out) == 75 and sorted([*fit, *out]) == list(range(250)) and np.array_equal(out, held_out(250)[1])
    )


# Any states
def spread(t, shrinkage=None):  # Covariance of a fit
    f = density.gaussian(t, shrinkage).factor
    return np.linalg.inv(f @ f.T)


def cloud(seed, n, d, scale=None):
    return np.random.default_rng(seed).normal(size=(n, d)) * (1 if scale is None else scale)


@given(st.integers(0, 99), st.integers(1, 4), st.integers(6, 30))
def test_a_linear_map_of_all_states_changes_no_distance(seed, d, n):
    t, h, A = (
        cloud(seed, n, d),
        cloud(seed + 1, 5, d),
        np.random.default_rng(seed).normal(size=(d, d)) + 3 * np.eye(d),
    )
    np.testing.assert_allclose(
        mahalanobis_distance(h @ A + 7, t @ A + 7), mahalanobis_distance(h, t), rtol=1e-6
    )


@given(st.integers(0, 99), st.integers(2, 6), st.floats(0.01, 100))
def test_with_few_states_rotation_and_unit_still_change_nothing(seed, n, unit):
    t, h = cloud(seed, n, 8), cloud(seed + 1, 5, 8)
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(8, 8)))[0] * unit
    got = mahalanobis_distance(h, t)
    np.testing.assert_allclose(mahalanobis_distance(h @ Q, t @ Q), got, rtol=1e-6)
    assert np.isfinite(got).all()


def test_shrinkage_goes_from_the_covariance_to_a_ball():
    t, S = cloud(0, 50, 3, [1, 2, 3]), np.cov(cloud(0, 50, 3, [1, 2, 3]), rowvar=False)
    for a in (None, 0, 0.25, 1):
        np.testing.assert_allclose(
            spread(t, a), (1 - (a or 0)) * S + (a or 0) * np.trace(S) / 3 * np.eye(3), rtol=1e-10, atol=1e-12
        )
    few = cloud(0, 3, 3)
    assert not np.allclose(spread(few), np.cov(few, rowvar=False), rtol=0.01) and np.trace(
        spread(few)
    ) == pytest.approx(np.trace(np.cov(few, rowvar=False)))
    C = np.cov(few, rowvar=False, bias=True)
    m, q = np.trace(C) / 3, (C**2).mean()
    np.testing.assert_allclose(
        spread(few), spread(few, min(1, (q + m**2) / (4 * (q - m**2 / 3)))), rtol=1e-10
    )  # the estimate for 3 states in 3 dimensions, written out
    assert np.linalg.eigvalsh(spread(np.tile(few, (9, 1))))[0] > 1e-3  # copies are no further states
    with pytest.raises(ValueError, match=r"weight in \[0,1\], got 2"):
        density.gaussian(t, 2)


@given(st.integers(0, 99))
def test_order_and_copies(seed):
    t, h = cloud(seed, 40, 3), cloud(seed + 1, 4, 3)
    for f in (mahalanobis, mahalanobis_he2024):
        got = f(list(h), t)
        np.testing.assert_allclose(f(list(h[::-1]) + list(h), t[::-1]), got[::-1] + got, rtol=1e-4)


def test_robust_distance_saturates_and_follows_its_items():
    t = cloud(0, 150, 8)
    h = [np.zeros(8), np.full(8, 2.5), np.full(8, 1e3), np.full(8, -1e5)]
    a = robust_distance(h, t)
    assert a[0] < a[1] and a[2] == a[3]  # far outside all likenesses are 0
    np.testing.assert_allclose(robust_distance(h[::-1] + h, t), a[::-1] + a, rtol=1e-9)


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
    t = cloud(0, 150, 3)
    fine = 1.0
    assert np.isfinite(robust_distance(list(t[:2]), t)).all() and tried == [None, 0.9, 1.0]
    fine = "nothing"
    with pytest.raises(ValueError, match="no part of 150 training states has a covariance.*no determinant"):
        robust_distance(list(t[:2]), t)


@pytest.mark.parametrize(
    "f",
    [mahalanobis, mahalanobis_he2024, background_mahalanobis, background_mahalanobis_lmp, robust_distance],
)
def test_training_states_that_cannot_make_a_density(f):
    item = [np.zeros(3)]
    with pytest.raises(ValueError, match="at least 2 training states that differ, got 1 different of 1"):
        f(item, np.ones((1, 3)))  # the release: NaN for all
    with pytest.raises(ValueError, match="got 1 different of 4"):
        f(item, np.ones((4, 3)))
    with pytest.raises(ValueError, match="1 of 3 training states hold"):
        f(item, np.array([[1, 2, 3], [0, np.nan, 1], [4, 5, 7.0]]))
    with pytest.raises(ValueError, match=r"shape \[n,D\], got \(3,\)"):
        f(item, np.ones(3))


@pytest.mark.parametrize(
    "f,score", [(mahalanobis, md), (mahalanobis_he2024, md_he2024), (robust_distance, rde)]
)
def test_an_item_without_a_state_is_left_out_alone(f, score):
    t, item = cloud(0, 150, 3), np.ones(3)
    got = f([item, np.full(3, np.nan), item], t)
    assert got[0] == got[2] == pytest.approx(f([item], t)[0], rel=1e-9) and np.isnan(got[1])
    with pytest.raises(Undefined, match="not a number"):
        score(got[1])


def test_the_last_rung_is_taken_when_none_helps():
    assert jittered(np.eye(2))[1] == 1e-15 and jittered(-np.eye(2))[1] == 0.1
    assert np.allclose(jittered(-np.eye(2))[0], -0.9 * np.eye(2))


def test_a_negative_square_is_undefined(monkeypatch):
    monkeypatch.setattr(
        "uetrust.ue.density.jittered", lambda c: (-c, 0.0)
    )  # what rounding can do to a covariance without spread
    with pytest.raises(Undefined, match="square negative"):
        md_he2024(mahalanobis_he2024([np.ones(3)], cloud(0, 9, 3))[0])


def test_float32_counts_in_the_release_and_not_in_the_definition():
    t, h = cloud(0, 20, 32), cloud(1, 4, 32)
    assert jittered(np.cov(t, rowvar=False).astype("float32"))[1] > 1e5 * jittered(np.cov(t, rowvar=False))[1]
    np.testing.assert_allclose(
        mahalanobis_distance(h.astype("float32"), t.astype("float32")), mahalanobis_distance(h, t), rtol=1e-5
    )


# Ranks
def naive_huq(e, a, alpha=0.1, near=0.1, unclear=0.9):
    n = len(e)

    def rank(x, among):
        return sum(y < x for y in among) + (sum(y == x for y in among) + 1) / 2

    close = [i for i in range(n) if rank(e[i], e) <= near * n]

    def one(i):
        if i not in close:
            return (1 - alpha) * rank(e[i], e) + alpha * rank(a[i], a)
        return rank(a[i], a) if rank(a[i], a) > unclear * n else rank(a[i], [a[j] for j in close])

    return [one(i) for i in range(n)]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40),
    st.sampled_from([(0.1, 0.1, 0.9), (0.5, 0.3, 0.6)]),
)
def test_hybrid_ranks_are_those_of_the_definition(pairs, options):
    e, a = np.array(pairs, float).T
    np.testing.assert_allclose(hybrid_ranks(e, a, *options), naive_huq(e, a, *options))
    np.testing.assert_allclose(hybrid_ranks(e[::-1], a[::-1], *options), naive_huq(e, a, *options)[::-1])


def test_the_borders_of_the_shares_belong_to_them():
    e, nine = (
        np.arange(10.0),
        np.array([8.0, 0, 1, 2, 3, 4, 5, 6, 7, 9]),
    )  # the nearest item has rank 1 of 10 by distance and 9 of 10 by surprisal
    assert hybrid_ranks(e, nine)[0] == 1 and hybrid_ranks(e, e[::-1])[0] == 10
    np.testing.assert_allclose(hybrid_ranks(e, nine), naive_huq(e, nine))


def test_items_without_distance_or_tokens_do_not_count_for_others():
    got = huq_rank([3.0, np.nan, 1.0, 2.0, 9.0], [1.0, 9.0, 3.0, np.nan, 5.0])
    assert np.isnan(got).tolist() == [False, True, False, True, False]
    assert [got[i] for i in (0, 2, 4)] == hybrid_ranks(np.array([3.0, 1, 9]), np.array([1.0, 3, 5])).tolist()
    with pytest.raises(Undefined, match="no place"):
        huq(got[1])
    t = cloud(0, 40, 2)
    both = ppl_md_percentile([[], [-1.0]], [0.5, 2], [t[0], np.full(2, np.nan)], t)
    assert np.isnan(both).all()
    with pytest.raises(Undefined, match="no place"):
        ppl_md(both[0])


def test_percentiles():
    assert percentile([1, 2, 2.5, np.nan], [3, 2, 1, 2]).tolist()[:3] == [0.25, 0.75, 0.75]
    with pytest.raises(ValueError, match="got 2 of which 1 are not numbers"):
        percentile([1], [np.nan, 1])
    with pytest.raises(ValueError, match="got 0"):
        percentile([1], [])


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
    run = Run(range(4), whole=belongs(), **drawn(2, 4))
    for name in SHARDWISE:
        score(run, name)
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

    whole, taken = belongs(), []

    def counted(name, f):
        return lambda *a, **k: taken.append(name) or f(*a, **k)

    for at in (np.linalg, scipy.linalg, scipy.sparse.linalg):
        for name in ("eigh", "eigvalsh", "eig", "inv", "pinv", "pinvh", "svd", "cholesky", "solve", "eigsh"):
            if hasattr(at, name):
                monkeypatch.setattr(at, name, counted(name, getattr(at, name)))
    per_shard = []
    for seed in (2, 3):
        run = Run(range(4), whole=whole, **drawn(seed, 4))
        for name in SHARDWISE:
            score(run, name)
        per_shard.append(len(taken))
    assert per_shard[0] > 0 and per_shard[1] == per_shard[0]


def test_shards_have_the_numbers_of_the_whole():
    x, whole = drawn(2, 6), belongs()
    once = Run(range(6), whole=dict(whole), **x)
    parts = [Run(range(3), whole=whole, **{k: v[a : a + 3] for k, v in x.items()}) for a in (0, 3)]
    for name in SHARDWISE:
        np.testing.assert_allclose(
            [v for p in parts for v in score(p, name)["value"]],
            score(once, name)["value"],
            rtol=1e-6,
            err_msg=name,
        )


def test_hybrid_ranks_wait_for_the_scores_of_all():
    assert scores_needed("huq", reg) == {"md", "perplexity"} and stored("huq", reg) == ["md", "perplexity"]
    t = score(Run("abc", md=[1.0, np.nan, 2.0], perplexity=[3.0, 1.0, 4.0]), "huq")
    assert (
        t["value"].tolist()[::2] == hybrid_ranks(np.array([1.0, 2]), np.array([3.0, 4])).tolist()
        and np.isnan(t["value"][1])
        and "no place" in t["note"][1]
    )


def test_no_input_is_changed():
    t, b, h = cloud(0, 150, 3), cloud(1, 60, 3), list(cloud(2, 4, 3))
    run = Run(
        range(4),
        whole=dict(train_states=t, background_states=b, train_perplexity=np.arange(9.0)),
        greedy_state=h,
        greedy_logp=[np.array([-1.0, -2])] * 4,
    )
    for name in SHARDWISE:
        assert score(run, name)["value"].notna().all()
    assert (
        np.array_equal(t, cloud(0, 150, 3))
        and np.array_equal(b, cloud(1, 60, 3))
        and np.array_equal(h, cloud(2, 4, 3))
    )


def test_states_that_lie_on_a_plane_are_shrunk_however_many_they_are():
    "The last layer norm of BART leaves its states no variance across one plane; rounding to float32 leaves a little."
    x = np.random.default_rng(3).normal(size=(400, 8))
    flat = (x - x.mean(1, keepdims=True)).astype("float32")
    np.testing.assert_allclose(spread(x), np.cov(x, rowvar=False), rtol=1e-10, atol=1e-12)
    assert not np.allclose(spread(flat), np.cov(flat.astype(float), rowvar=False), atol=1e-6)
    far = mahalanobis_distance(flat[:50], flat)
    assert np.isfinite(far).all() and far.max() < 10
