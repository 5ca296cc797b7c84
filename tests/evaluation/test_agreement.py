"""Rank agreement: exact null distributions equal enumeration, published heat maps have their counts, and
adjusted p-values equal slow versions."""

import math
from functools import cache
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from uetrust.core.settings import published_file
from uetrust.evaluation import agreement as ag
from uetrust.evaluation.multiple import benjamini_hochberg, holm

small = st.integers(0, 3)
pairs_of = lambda lo, hi, v=small: st.lists(st.tuples(v, v), min_size=lo, max_size=hi).map(
    lambda ps: tuple(map(list, zip(*ps, strict=True)))
)
varied = lambda *vs: all(len(set(v)) > 1 for v in vs)


def midranks(v):
    return [sum(b < a for b in v) + (sum(b == a for b in v) + 1) / 2 for a in v]


def products(a, b):
    return [sum(x * y for x, y in zip(a, p, strict=True)) for p in permutations(b)]


def naive_p(x, y):
    "Share of all orders of the midranks of y that lie as far from 0; in quarters, hence exact"
    mid = (len(x) + 1) / 2
    a, b = [r - mid for r in midranks(x)], [r - mid for r in midranks(y)]
    return np.mean([abs(s) >= abs(sum(i * j for i, j in zip(a, b, strict=True))) for s in products(a, b)])


# --- The null of rho
@pytest.mark.parametrize("n", range(4, 10))
def test_null_counts_are_those_recorded(oracle, n):
    want = {int(k): v for k, v in oracle("evaluation.json")["spearman_null"][str(n)]["sum_d2_counts"].items()}
    assert dict(zip(*map(list, ag.spearman_null(n)), strict=True)) == want


@pytest.mark.parametrize("n", [*range(4, 10), 15, 16])
def test_p_values_are_those_recorded(oracle, n):
    want = oracle("evaluation.json")["spearman_null"][str(n)]
    rho = np.array([float(k) for k in want["two_sided_p"]])
    for sign in (1, -1):
        np.testing.assert_allclose(
            ag.spearman_p(sign * rho, n), list(want["two_sided_p"].values()), rtol=0, atol=1e-12
        )
    assert ag.smallest_attainable_p(n) == pytest.approx(want["p_at_1"], rel=1e-12) == ag.spearman_p(1.0, n)
    assert len(ag.spearman_null(n)[0]) == want["distinct_values"]


@pytest.mark.parametrize("n", range(2, 8))
def test_null_is_that_of_enumeration(n):
    d2 = [sum((i - j) ** 2 for i, j in enumerate(p)) for p in permutations(range(n))]
    values, counts = np.unique(d2, return_counts=True)
    np.testing.assert_array_equal(ag.spearman_null(n), (values, counts))


@pytest.mark.parametrize("n", range(2, 17))
def test_null_is_symmetric_and_counts_every_ranking(n):
    d2, counts = ag.spearman_null(n)
    assert counts.sum() == math.factorial(n)
    np.testing.assert_array_equal(counts, counts[::-1])
    np.testing.assert_array_equal(d2 + d2[::-1], n * (n * n - 1) // 3)
    assert (counts * (1 - 6 * d2 / (n * (n * n - 1))) ** 2).sum() / counts.sum() == pytest.approx(
        1 / (n - 1)
    )  # the known variance of rho


@pytest.mark.parametrize("n", [-1, 1, 17])
def test_there_is_no_exact_null_for_other_sizes(n):
    with pytest.raises(ValueError, match=f"2 to 16 items, got {n}"):
        ag.spearman_null(n)


def test_a_caller_cannot_spoil_the_cached_null():
    with pytest.raises(ValueError, match="read-only"):
        ag.spearman_null(5)[1][0] = 7


@pytest.mark.parametrize(
    "n,limits",
    {
        4: (None, None, None),
        6: (0.8857, 1, None),
        7: (0.7857, 0.9286, 1),
        9: (0.7, 0.8333, 0.9333),
        15: (0.5214, 0.6536, 0.7786),
        16: (0.5029, 0.6353, 0.7618),
    }.items(),
)
def test_limits_of_significance(n, limits):
    for alpha, want in zip((0.05, 0.01, 0.001), limits, strict=True):
        if want is None:
            assert np.isnan(ag.critical_rho(n, alpha))
        else:
            assert ag.critical_rho(n, alpha) == pytest.approx(want, abs=5e-5)


@pytest.mark.parametrize("n,want", {30: (0.362, 0.466, 0.579), 31: (0.356, 0.460, 0.570)}.items())
def test_limits_beyond_16_are_as_liberal_as_simulation_says(n, want):
    off = np.array(want) - [ag.critical_rho(n, a) for a in (0.05, 0.01, 0.001)]
    assert (off > 0).all() and (off < 0.009).all()


@pytest.mark.parametrize("n", [6, 16, 17, 40])
@pytest.mark.parametrize("alpha", [0.05, 0.003])
def test_limit_is_where_p_crosses_alpha(n, alpha):
    r = ag.critical_rho(n, alpha)
    step = 12 / (n * (n * n - 1))
    assert ag.spearman_p(r, n) <= alpha + 1e-12 < ag.spearman_p(r - step, n)


@given(st.integers(17, 60), st.floats(0.001, 0.99), st.sampled_from([-1, 1]))
def test_beyond_16_p_is_student_t(n, rho, sign):
    from scipy.special import stdtr

    assert ag.spearman_p(sign * rho, n) == pytest.approx(
        2 * stdtr(n - 2, -rho * math.sqrt((n - 2) / (1 - rho**2))), rel=1e-9
    )


def test_p_is_never_below_what_a_ranking_can_reach():
    assert ag.spearman_p(1.0, 17) == 2 / math.factorial(17)


def test_p_keeps_shape_and_nan():
    rho = np.array([[1, np.nan], [-0.5, 0]])
    for n in (9, 30):
        p = ag.spearman_p(rho, n)
        np.testing.assert_array_equal(np.isnan(p), np.isnan(rho))
        assert p[1, 1] == pytest.approx(1)
    with pytest.raises(ValueError, match="found 1.01"):
        ag.spearman_p([0.1, 1.01], 9)


# --- One pair
@given(pairs_of(3, 6))
def test_p_with_ties_is_that_of_enumeration(xy):
    x, y = xy
    assume(varied(x, y))
    assert ag.spearman(x, y).p == pytest.approx(naive_p(x, y), abs=1e-12)


@given(pairs_of(3, 30, st.integers(-5, 5)))
def test_rho_is_pearson_of_average_ranks(xy):
    x, y = xy
    c = ag.spearman(x, y)
    if not varied(x, y):
        assert np.isnan(c.r) and np.isnan(c.p) and c.n == len(x)
    else:
        assert c.r == pytest.approx(np.corrcoef(midranks(x), midranks(y))[0, 1], abs=1e-12)


def test_rho_on_a_threshold_is_not_rounded_away():
    "d2 = 10 of 5 items is rho = 0.5, and cells are counted with rho >= 0.5"
    hits = [
        ag.spearman(range(5), p).r
        for p in permutations(range(5))
        if sum((i - j) ** 2 for i, j in enumerate(p)) == 10
    ]
    assert hits == [0.5] * 6


@pytest.mark.parametrize("n", range(10, 13))
def test_sampled_p_with_ties_lies_near_the_exact_one(n):
    x, y = np.random.default_rng(n).integers(0, 5, (2, n)) + np.array([np.arange(n) // 4] * 2)
    a, b = (2 * np.array([midranks(v) for v in (x, y)]) - (n + 1)).astype(int)
    s, counts = ag._products(*(tuple((v + n - 1).tolist()) for v in (a, b)))
    exact = counts[abs(s - n * (n - 1) ** 2) >= abs(a @ b)].sum() / math.factorial(n)
    assert abs(ag.spearman(x, y).p - exact) < 3 * math.sqrt(exact * (1 - exact) / ag.SHUFFLES) + 1e-4


def test_sampled_p_counts_what_is_equally_far():
    "Six ones of twelve on each side, five shared: hypergeometric, 2*(36 + 1) of 924 ways are as far from 3"
    x, y = [1] * 6 + [0] * 6, [1] * 5 + [0] * 6 + [1]
    assert abs(ag.spearman(x, y).p - 74 / 924) < 0.006


def test_ties_beyond_16_take_student_t():
    from scipy.stats import spearmanr

    x, y = np.random.default_rng(0).integers(0, 6, (2, 25))
    assert ag.spearman(x, y).p == pytest.approx(spearmanr(x, y).pvalue, rel=1e-9)


@pytest.mark.parametrize("n,levels", [(7, 50), (7, 4), (13, 50), (13, 4), (25, 6)])
@pytest.mark.parametrize("corr", [ag.spearman, ag.kendall])
def test_p_depends_on_the_ranking_alone(corr, n, levels):
    rng = np.random.default_rng(n)
    x, y = (
        rng.permutation(levels)[:n] if levels > n else rng.integers(0, levels, n),
        rng.integers(0, levels, n),
    )
    c, order = corr(x, y), rng.permutation(n)
    for other, sign in (
        (corr(y, x), 1),
        (corr(x[order], y[order]), 1),
        (corr(np.exp(x / 9.0), 3 * y - 7), 1),
        (corr(x, -y), -1),
    ):
        assert other.r == pytest.approx(sign * c.r, abs=1e-12) and other.p == pytest.approx(c.p, abs=1e-12)


@pytest.mark.parametrize("corr", [ag.spearman, ag.kendall])
def test_gaps_are_dropped_and_counted(corr):
    x, y = [1, 2, np.nan, 4, 2, 9], [2, 1, 5, np.nan, 7, 8]
    assert corr(x, y) == corr([1, 2, 2, 9], [2, 1, 7, 8]) and corr(x, y).n == 4
    assert np.isnan(corr([1, 2, np.nan], [1, 2, 3]).r)
    with pytest.raises(ValueError, match="got 2 and 3"):
        corr([1, 2], [1, 2, 3])


def test_two_series_of_different_samples_are_refused():
    x = pd.Series([1.0, 2, 3], index=list("abc"))
    assert ag.spearman(x, x).r == 1
    with pytest.raises(ValueError, match="align"):
        ag.spearman(x, x[::-1])


@given(pairs_of(3, 7))
def test_kendall_is_tau_b(xy):
    x, y = xy
    assume(varied(x, y))
    sign = lambda v: np.array([np.sign(a - b) for a, b in combinations(v, 2)])
    a, b = sign(x), sign(y)
    assert ag.kendall(x, y).r == pytest.approx(
        (a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()), abs=1e-12
    )


@given(st.permutations(range(6)))
def test_kendall_without_ties_has_the_exact_p(y):
    far = lambda p: abs(sum(np.sign(b - a) for a, b in combinations(p, 2)))
    assert ag.kendall(range(6), y).p == pytest.approx(
        np.mean([far(p) >= far(y) for p in permutations(range(6))]), abs=1e-12
    )


def test_sampled_p_of_no_correlation_is_one():
    assert ag.spearman([1] * 6 + [0] * 6, [1, 0] * 6) == (0, 12, 1)


# --- A table
def numbers(shape, seed=0, gaps=0.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    x[rng.random(shape) < gaps] = np.nan
    return pd.DataFrame(
        x, index=[f"m{i}" for i in range(shape[0])], columns=[f"u{i}" for i in range(shape[1])]
    )


@pytest.mark.parametrize("coef", ["spearman", "kendall"])
@pytest.mark.parametrize("adjust,fn", [("bh", benjamini_hochberg), ("holm", holm)])
def test_agreement_is_every_pair_once(coef, adjust, fn):
    t = numbers((8, 5), gaps=0.15)
    t["u1"], t["u2"], t["u4"] = t["u0"] + 0.3 * t["u1"], 1.0, t["u0"] + 0.1 * t["u4"]
    a = ag.agreement(t, coef=coef, adjust=adjust)
    assert list(a.columns) == ["label_a", "label_b", "rho", "n", "p", "q"] and list(
        zip(a.label_a, a.label_b, strict=True)
    ) == list(combinations(t.columns, 2))
    for r in a.itertuples():
        np.testing.assert_equal((r.rho, r.n, r.p), tuple(getattr(ag, coef)(t[r.label_a], t[r.label_b])))
    assert a.rho[(a.label_a == "u2") | (a.label_b == "u2")].isna().all() and a.rho.notna().sum() == 6
    np.testing.assert_array_equal(a.q, fn(a.p))
    assert not np.array_equal(holm(a.p), benjamini_hochberg(a.p), equal_nan=True)


def test_two_columns_are_one_pair():
    assert len(ag.agreement(numbers((6, 2)))) == 1


def test_rows_are_the_columns_of_the_transpose():
    t = numbers((6, 9))
    pd.testing.assert_frame_equal(ag.agreement(t, between="rows"), ag.agreement(t.T))
    assert len(ag.agreement(t, between="rows")) == 15 and (ag.agreement(t, between="rows").n == 9).all()


def test_agreement_refuses_what_it_cannot_read():
    t = numbers((6, 3))
    for options, says in (
        (dict(between="metrics"), "between is one of"),
        (dict(coef="pearson"), "got 'pearson'"),
        (dict(adjust="none"), "adjust is one of"),
    ):
        with pytest.raises(ValueError, match=says):
            ag.agreement(t, **options)
    with pytest.raises(ValueError, match="at least 2 columns"):
        ag.agreement(t[["u0"]])
    with pytest.raises(ValueError, match="duplicated column names: u0"):
        ag.agreement(t.set_axis(["u0", "u0", "u1"], axis=1))


@given(st.integers(0, 99), st.floats(0.01, 100), st.floats(-5, 5))
def test_agreement_does_not_see_the_scale(seed, a, b):
    t = numbers((7, 4), seed)
    want = ag.agreement(t)
    for other in (a * t + b, t**3, t.sample(frac=1, random_state=seed), t.rank()):
        pd.testing.assert_frame_equal(ag.agreement(other), want)


def test_square_lays_out_every_pair_twice():
    t = numbers((9, 5), gaps=0.1)
    tidy = ag.agreement(t)
    for value in ("rho", "p", "q", "n"):
        m = ag.agreement_matrix(tidy, value=value)
        for r in tidy.itertuples():
            assert m.loc[r.label_a, r.label_b] == m.loc[r.label_b, r.label_a] == getattr(r, value)
        assert (np.diag(m) == 1).all() if value == "rho" else np.isnan(np.diag(m)).all()
    want = ag.agreement_matrix(tidy)
    assert list(want.index) == list(want.columns) == list(t.columns)
    pd.testing.assert_frame_equal(
        ag.agreement_matrix(tidy, ["u3", "u0"]), want.loc[["u3", "u0"], ["u3", "u0"]]
    )
    with pytest.raises(ValueError, match="no label .'u9'"):
        ag.agreement_matrix(tidy, ["u0", "u9"])


@given(st.permutations(range(6)))
def test_clusters_stand_together(order):
    "Three blocks with 0.9 inside; blocks 0 and 1 correlate with 0.4, so block 2 stands at an end"
    block = np.arange(6) // 2
    m = np.where(block[:, None] == block, 0.9, np.where((block[:, None] < 2) & (block < 2), 0.4, -0.2))
    np.fill_diagonal(m, 1)
    m = pd.DataFrame(m, index=list("abcdef"), columns=list("abcdef")).iloc[list(order), list(order)]
    blocks = [block["abcdef".index(l)] for l in ag.cluster_order(m)]
    assert blocks in ([0, 0, 1, 1, 2, 2], [1, 1, 0, 0, 2, 2], [2, 2, 0, 0, 1, 1], [2, 2, 1, 1, 0, 0])


def test_neighbours_are_as_close_as_the_tree_allows():
    "Optimal leaf order: d is nearer to b than to a, so b stands next to it"
    m = pd.DataFrame(
        [[1, 0.9, 0, 0], [0.9, 1, 0, 0.3], [0, 0, 1, 0.8], [0, 0.3, 0.8, 1]],
        index=list("abcd"),
        columns=list("abcd"),
    )
    assert ag.cluster_order(m) in (list("abdc"), list("cdba"))


def test_an_undefined_correlation_clusters_like_none():
    m = ag.agreement_matrix(ag.agreement(numbers((5, 7))))
    gaps, zero = m.copy(), m.copy()
    gaps.iloc[1, 4] = gaps.iloc[4, 1] = np.nan
    zero.iloc[1, 4] = zero.iloc[4, 1] = 0
    assert ag.cluster_order(gaps) == ag.cluster_order(zero)
    assert ag.cluster_order(m.iloc[:2, :2]) == ["u0", "u1"]


# --- The published heat maps
@cache
def prr():
    return pd.read_csv(published_file("uets_prr.csv"))


def heat_map(figure, all_metrics=True):
    "Table behind a figure and what it compares; figures over all dimensions show one family of judges only"
    f = pd.read_csv(published_file("uets_figures.csv")).set_index("figure").loc[figure]
    d = prr()[prr()["table"] == f.source_table]
    if f.dimension != "all":
        d = d[d.dimension == f.dimension]
    elif f.correlates == "nlg_metrics" or not all_metrics:
        d = d[
            ~d.metric_family.isin(["wo-GPT-3.5", "wi-gt-GPT-3.5", "wi-in-GPT-3.5"]) | (d.generator == "BART")
        ]
    names = {
        9: ("nlg_metric", "ue_method"),
        10: ("nlg_metric", "human_dimension"),
        11: ("human_dimension", "ue_method"),
    }.get(f.source_table, ("nlg_metric", "ue_method"))
    between = "rows" if f.correlates == "nlg_metrics" else "columns"
    a = ag.agreement(d.pivot(index=names[0], columns=names[1], values="value"), between=between)
    n = {7: 30, 13: 30, 8: 31, 14: 31}.get(figure, f.n_observations) if all_metrics else f.n_observations
    assert len(a) == f.n_labels * (f.n_labels - 1) // 2 and (a.n == n).all()
    return a


def survivors(figures, **options):
    maps = [heat_map(f, **options) for f in figures]
    count = lambda fn: int(sum((fn(m) <= 0.05).sum() for m in maps))
    return (
        sum(map(len, maps)),
        count(lambda m: m.p),
        count(lambda m: holm(m.p)),
        count(lambda m: m.q),
        int(sum((m.rho >= 0.5).sum() for m in maps)),
    )


SURVIVORS = {  # figures: cells, raw, Holm, BH, rho >= 0.5
    (3,): (120, 25, 5, 14, 39),
    (9,): (120, 40, 4, 20, 43),
    (4,): (105, 0, 0, 0, 40),
    (10,): (105, 0, 0, 0, 25),
    (5,): (120, 11, 0, 0, 48),
    (11,): (120, 21, 0, 0, 32),
    (6,): (36, 12, 11, 11, 13),
    (12,): (36, 28, 23, 28, 28),
    (7,): (6, 3, 3, 3, 3),
    (13,): (6, 3, 3, 3, 3),
    (8,): (15, 9, 2, 9, 3),
    (14,): (15, 15, 15, 15, 10),
    (16, 19, 21, 23, 25, 28, 31, 33, 35, 37): (158, 0, 0, 0, 66),
    (17, 20, 22, 24, 26, 29, 32, 34, 36, 38): (172, 16, 2, 4, 65),
    (15, 18, 27, 30): (40, 9, 6, 7, 12),
    (39,): (6, 5, 3, 4, 3),
    (40,): (6, 1, 1, 1, 1),
    (41,): (105, 17, 1, 1, 46),
}


@pytest.mark.parametrize("figures,want", SURVIVORS.items(), ids=str)
def test_what_survives_in_a_published_heat_map(figures, want):
    assert survivors(figures) == want


def test_every_figure_is_counted():
    assert sorted(f for fs in SURVIVORS for f in fs) == list(range(3, 42))


@pytest.mark.parametrize("k", range(3, 12))
def test_no_printed_row_ties(k):
    "So the untied null is the right one for every heat map between metrics"
    d = prr()[prr()["table"] == k]
    assert not d.duplicated(["row_in_table", "value"]).any()


@pytest.mark.parametrize("k", range(3, 12))
def test_recorded_tables_agree_the_same(oracle, k):
    t = oracle("evaluation.json")["he2024_tables"][str(k)]
    theirs = pd.DataFrame(
        [r[1:] for r in t["rows"]], index=[r[0] for r in t["rows"]], columns=t["columns"]
    ).drop(index="Col Mean", columns="RowMean", errors="ignore")
    ours = prr()[prr()["table"] == k].pivot(index="row_in_table", columns="col_in_table", values="value")
    for between in ("rows", "columns"):
        np.testing.assert_array_equal(
            ag.agreement(ours, between=between)[["rho", "p", "q"]],
            ag.agreement(theirs, between=between)[["rho", "p", "q"]],
        )


# --- All judges at once
judged = lambda n, m: st.lists(st.lists(small, min_size=m, max_size=m), min_size=n, max_size=n)


@given(judged(5, 3))
def test_w_is_the_textbook_formula(rows):
    t = pd.DataFrame(rows)
    (n, m), ranks = t.shape, t.rank()
    ties = sum((c**3 - c).sum() for c in (t[j].value_counts() for j in t))
    bottom = m * m * (n**3 - n) - m * ties
    w = ag.kendall_w(t)
    if bottom == 0:
        assert np.isnan([w.w, w.chi2, w.p_chi2, w.p]).all()
    else:
        assert w.w == pytest.approx(
            12 * ((ranks.sum(axis=1) - m * (n + 1) / 2) ** 2).sum() / bottom, abs=1e-12
        )
        assert w.chi2 == pytest.approx(m * (n - 1) * w.w, abs=1e-9)


@given(judged(4, 3))
def test_p_of_w_is_that_of_enumeration(rows):
    t = pd.DataFrame(rows)
    assume(any(t[c].nunique() > 1 for c in t))
    cols = [midranks(t[c]) for c in t]
    spread = lambda rs: sum((sum(r) - 3 * 2.5) ** 2 for r in zip(*rs, strict=True))
    null = [spread((cols[0], *ps)) for ps in product(*(list(permutations(c)) for c in cols[1:]))]
    assert ag.kendall_w(t).p == pytest.approx(np.mean(np.array(null) >= spread(cols)), abs=1e-12)


def test_w_agrees_with_friedman():
    from scipy.stats import friedmanchisquare

    t = pd.DataFrame(np.random.default_rng(0).integers(0, 5, (12, 6)))
    f = friedmanchisquare(*t.to_numpy())
    w = ag.kendall_w(t)
    assert (w.chi2, w.p_chi2, w.m, w.n) == (pytest.approx(f.statistic), pytest.approx(f.pvalue), 6, 12)


@given(st.integers(0, 999))
def test_w_is_the_mean_rho_in_another_dress(seed):
    t = numbers((6, 4), seed)
    assert (4 * ag.kendall_w(t).w - 1) / 3 == pytest.approx(ag.agreement(t).rho.mean(), abs=1e-12)


def test_shuffled_p_of_w_lies_near_the_exact_one():
    ranks = np.array([np.random.default_rng(i).permutation(5) * 2 - 4 for i in range(5)])
    s = int((ranks.sum(0) ** 2).sum())
    exact = ag._exact_w(ranks, s)
    assert abs(ag._shuffled_w(ranks, s, 0) - exact) < 3 * math.sqrt(exact * (1 - exact) / ag.SHUFFLES) + 1e-4


def test_w_chooses_its_p_by_size():
    big = numbers((101, 3))
    assert ag.kendall_w(big).p == ag.kendall_w(big).p_chi2
    mid = numbers((12, 3))
    assert ag.kendall_w(mid) == ag.kendall_w(mid) != ag.kendall_w(mid, seed=1)
    assert round(ag.kendall_w(mid).p * 10000, 6) % 1 == 0
    few, (more_items, more_judges) = numbers((5, 6)), (numbers((6, 6)), numbers((5, 7)))
    assert ag.kendall_w(few) == ag.kendall_w(few, seed=1)  # Exact up to 5 items and 6 judges
    for larger in (more_items, more_judges):
        assert ag.kendall_w(larger).p != ag.kendall_w(larger, seed=1).p
    same = numbers((12, 1)).iloc[:, [0] * 3].set_axis(list("abc"), axis=1)
    assert ag.kendall_w(same)[0] == 1 and ag.kendall_w(same).p == 1 / 10000


def test_w_drops_incomplete_items():
    t = numbers((6, 3))
    holed = t.copy()
    holed.iloc[2, 1] = np.nan
    assert ag.kendall_w(holed) == ag.kendall_w(t.drop(index="m2")) and ag.kendall_w(holed).n == 5
    assert np.isnan(ag.kendall_w(t.iloc[:1]).w) and np.isnan(ag.kendall_w(t * np.nan).w)
    with pytest.raises(ValueError, match="at least 2 judges"):
        ag.kendall_w(t[["u0"]])
    with pytest.raises(ValueError, match="duplicated column names: u0"):
        ag.kendall_w(t[["u0", "u0"]])


# --- How sure is a ranking
methods = pd.Series(dict(msp=0.2, mte=0.1, md=0.15, rde=-0.3))


def test_without_noise_a_ranking_is_certain():
    r = ag.rank_intervals(methods, sd=0)
    assert (
        r["rank"].tolist() == r.rank_lo.tolist() == r.rank_hi.tolist() == [1, 3, 2, 4]
        and r.value.equals(methods)
        and r.best.tolist() == [1, 0, 0, 0]
    )


@pytest.mark.parametrize("gap,sd", [(0.1, 0.1), (0.05, 0.2), (0.3, 0.1)])
def test_share_of_firsts_is_the_normal_probability(gap, sd):
    want = 0.5 * math.erfc(-gap / sd / 2)
    r = ag.rank_intervals(pd.Series(dict(a=gap, b=0.0)), sd=sd, draws=40_000)
    assert abs(r.best["a"] - want) < 4 * math.sqrt(
        want * (1 - want) / 40_000
    ) and r.best.sum() == pytest.approx(1)


def test_noise_may_differ_by_method():
    r = ag.rank_intervals(methods, sd=pd.Series(dict(rde=9.0, md=0, mte=0, msp=0)))
    assert r.loc["mte", ["rank_lo", "rank_hi"]].tolist() == [3, 4] and r.loc[
        "rde", ["rank_lo", "rank_hi"]
    ].tolist() == [1, 4]
    assert r.best["mte"] == 0 and r.best["msp"] + r.best["rde"] == pytest.approx(1)
    for sd in (-1, methods.drop("md").abs()):
        with pytest.raises(ValueError, match="sd needs a number"):
            ag.rank_intervals(methods, sd=sd)


def test_replicates_are_ranked_draw_by_draw():
    reps = pd.DataFrame(
        [[3, 2, 1, 0], [3, 3, 1, 0], [0, 3, 2, 1], [0, 3, 2, 1]], columns=["mte", "msp", "md", "rde"]
    )
    r = ag.rank_intervals(methods, replicates=reps)
    assert r.best.to_dict() == dict(msp=2.5 / 4, mte=1.5 / 4, md=0, rde=0)
    assert (r.rank_lo["mte"], r.rank_hi["mte"], r.rank_lo["rde"], r.rank_hi["rde"]) == (1, 4, 3, 4)
    pd.testing.assert_frame_equal(ag.rank_intervals(methods, replicates=reps[methods.index].to_numpy()), r)


def test_interval_holds_95_percent_of_the_draws():
    "With 200 equal methods, ranks are nearly uniform: the interval leaves out 2.5 % on each side"
    alike = pd.Series(0.0, index=range(200))
    reps = np.random.default_rng(0).normal(size=(4000, 200))
    r = ag.rank_intervals(alike, replicates=reps)
    ranks = (-reps).argsort(1).argsort(1) + 1
    lo, hi = r.rank_lo.to_numpy(), r.rank_hi.to_numpy()
    for below, upto in (
        ((ranks < lo).mean(0), (ranks <= lo).mean(0)),
        ((ranks > hi).mean(0), (ranks >= hi).mean(0)),
    ):
        assert (below <= 0.0255).all() and (upto >= 0.0245).all()


def test_intervals_depend_on_the_seed_alone():
    r = ag.rank_intervals(methods, 0.1)
    pd.testing.assert_frame_equal(r, ag.rank_intervals(methods, 0.1))
    assert not r.equals(ag.rank_intervals(methods, 0.1, seed=1))


def test_a_method_without_value_gets_no_rank():
    m = pd.Series(dict(methods, vro=np.nan))
    reps = np.random.default_rng(0).normal(size=(50, 5))
    r = ag.rank_intervals(m, replicates=reps)
    assert r.loc["vro"].isna().all()
    pd.testing.assert_frame_equal(r.drop(index="vro"), ag.rank_intervals(methods, replicates=reps[:, :4]))
    with pytest.raises(ValueError, match="none of the 5"):
        ag.rank_intervals(m * np.nan, 0.1)


def test_noise_is_given_once_and_whole():
    reps = np.ones((3, 4))
    for options in ({}, dict(sd=0.1, replicates=reps)):
        with pytest.raises(ValueError, match="sd, or replicates"):
            ag.rank_intervals(methods, **options)
    with pytest.raises(ValueError, match=r"shape \[draws, 4\], got \(3, 2\)"):
        ag.rank_intervals(methods, replicates=reps[:, :2])
    reps[1, 2] = np.nan
    with pytest.raises(ValueError, match=r"1 of 3 draws have no value for \['md'\]"):
        ag.rank_intervals(methods, replicates=reps)
