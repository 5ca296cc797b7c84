"""Correlations under shuffled names: null, counts and p-values against loops, and equivalence tests."""

from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, spearmanr

from uetrust.evaluation.agreement import agreement, critical_rho
from uetrust.evaluation.shuffled import (
    _critical_tau,
    equivalence_p,
    partial_conjunction_p,
    rank_correlations,
    shuffle_within_rows,
    shuffled_agreement,
    smallest_equivalence_p,
)
from uetrust.papers.he2024.published import figure_table


def with_levels(seed, rows=5, columns=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 1)) + rng.normal(size=(rows, columns))


@pytest.mark.parametrize("coef,reference", [("spearman", spearmanr), ("kendall", kendalltau)])
def test_many_correlations_equal_one_at_a_time(coef, reference):
    "With ties, on a stack of matrices"
    x = np.random.default_rng(0).integers(0, 6, (4, 5, 9)).astype(float)
    got = rank_correlations(x, coef)
    for k, i, j in product(range(4), range(5), range(5)):
        assert got[k, i, j] == pytest.approx(reference(x[k, i], x[k, j]).statistic, abs=1e-11)


def test_every_row_keeps_its_values_and_its_gaps():
    table = with_levels(1)
    table[1, 2] = np.nan
    copies = shuffle_within_rows(table, 200, seed=3)
    np.testing.assert_array_equal(np.sort(copies, 2), np.broadcast_to(np.sort(table, 1), copies.shape))
    assert np.isnan(copies[:, 1, 2]).all() and (copies[:, 0, 0] != table[0, 0]).any()
    np.testing.assert_array_equal(copies, shuffle_within_rows(table, 200, seed=3))
    assert (np.nan_to_num(copies) != np.nan_to_num(shuffle_within_rows(table, 200, seed=4))).any()


def all_shuffles(table):  # Every one of the 6^rows tables with names shuffled inside rows of three
    orders = [list(permutations(row)) for row in table]
    return (np.array(rows) for rows in product(*orders))


def rho_by_formula(x, y):  # Without ties: 1 - 6 sum(d^2) / (n (n^2 - 1))
    d = x.argsort().argsort() - y.argsort().argsort()
    return 1 - 6 * (d**2).sum() / (len(x) * (len(x) ** 2 - 1))


def tau_by_formula(x, y):  # Without ties: pairs in the same order minus the others, over all
    same = np.sign((x[:, None] - x) * (y[:, None] - y))
    return same.sum() / (len(x) * (len(x) - 1))


@pytest.mark.parametrize("coef,reference", [("spearman", rho_by_formula), ("kendall", tau_by_formula)])
def test_p_and_counts_equal_a_loop_over_all_shuffles(coef, reference):
    table = with_levels(2)
    pairs = list(combinations(range(3), 2))
    null = np.array(
        [[reference(one[:, i], one[:, j]) for i, j in pairs] for one in all_shuffles(table)]
    ).round(12)
    limit = 0.999  # With five observations only a perfect rho is significant: p = 2/120
    assert len(null) == 6**5
    found = shuffled_agreement(pd.DataFrame(table), coef=coef, draws=4999)
    assert found.null_count[0] == pytest.approx((abs(null) > limit).sum(1).mean(), abs=0.04)
    assert found.significant == (found.pairs["rho"].abs() > limit).sum()
    for row in found.pairs.itertuples():
        tails = [(null >= round(row.rho, 12)).mean(), (null <= round(row.rho, 12)).mean()]
        assert row.p == pytest.approx(min(1, 2 * min(tails)), abs=0.02)
        assert row.null_mean == pytest.approx(null.mean(), abs=0.03)


def test_with_gaps_every_pair_has_a_null_of_its_own():
    table = with_levels(3, 8, 3)
    table[0, 2] = np.nan
    found = shuffled_agreement(pd.DataFrame(table), draws=3999).pairs
    assert found["n"].tolist() == [8, 7, 7]
    rng, null = np.random.default_rng(9), []
    for _ in range(3000):
        one = np.array([rng.permutation(row) if not np.isnan(row).any() else row for row in table])
        one[0, :2] = rng.permutation(table[0, :2])
        null.append(spearmanr(one[1:, 0], one[1:, 2]).statistic)
    tails = [
        (np.array(null) >= found["rho"][1] - 1e-9).mean(),
        (np.array(null) <= found["rho"][1] + 1e-9).mean(),
    ]
    assert found["p"][1] == pytest.approx(min(1, 2 * min(tails)), abs=0.05)


def test_rows_are_columns_of_the_turned_table():
    table = pd.DataFrame(with_levels(4))
    pd.testing.assert_frame_equal(
        shuffled_agreement(table).pairs, shuffled_agreement(table.T, between="rows").pairs
    )


def test_levels_alone_are_significant_in_5_of_100_tables_and_not_in_most():
    "Columns that share nothing but the levels of the rows: the classical p fails, the shuffled one holds"
    classical, shuffled = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame(1.5 * rng.normal(size=(16, 1)) + rng.normal(size=(16, 4)))
        pairs = shuffled_agreement(table, draws=199).pairs
        classical.append((pairs["p_classical"] < 0.05).mean())
        shuffled.append((pairs["p"] < 0.05).mean())
    assert np.mean(classical) > 0.7 and 0.03 < np.mean(shuffled) < 0.07


@pytest.mark.parametrize(
    "figure,significant,mean,lo,hi",
    [
        (6, 12, 13.4, 9, 18),
        (12, 28, 26.9, 22, 31),
        (13, 3, 4.9, 3, 6),
        (8, 5, 1.8, 0, 4),
        (14, 15, 4.2, 1, 7),
        (7, 3, 1.0, 0, 2),
    ],
)
def test_figures_of_methods_and_shuffled_names(figure, significant, mean, lo, hi):
    "Numbers of an independent computation; the ends of its intervals are of fewer shuffles"
    found = shuffled_agreement(*figure_table(figure)[:2], draws=1999)
    assert found.significant == significant
    assert found.null_count[0] == pytest.approx(mean, abs=0.2)
    assert abs(found.null_count[1] - lo) <= 1 and abs(found.null_count[2] - hi) <= 1


def test_the_count_of_figure_6_in_a_loop():
    table = figure_table(6).table.to_numpy()
    rng, counts = np.random.default_rng(5), []
    for _ in range(150):
        one = np.array([rng.permutation(row) for row in table])
        p = spearmanr(one).pvalue[np.triu_indices(9, 1)]
        counts.append((p < 0.05).sum())
    assert np.mean(counts) == pytest.approx(13.4, abs=1)


def test_metrics_over_methods_need_no_new_null():
    "With names shuffled inside each metric all rankings are equally likely: 2 in 24 are perfect"
    table = figure_table(4).table.to_numpy()
    rho = rank_correlations(shuffle_within_rows(table, 2000, 0))[:, *np.triu_indices(len(table), 1)]
    assert (abs(rho) == 1).mean() == pytest.approx(2 / 24, abs=0.005)
    assert np.isnan(critical_rho(4))


def test_critical_tau_is_the_smallest_significant_one():
    for n in (4, 5, 6):
        results = [kendalltau(range(n), order) for order in permutations(range(n))]
        significant = [abs(one.statistic) for one in results if one.pvalue <= 0.05]
        want = min(significant, default=np.nan)
        assert _critical_tau(n, 0.05) == pytest.approx(want, nan_ok=True)


def test_equivalence_p_equals_a_loop_and_keeps_its_level():
    rng, r = np.random.default_rng(1), 2 * np.sin(np.pi * 0.3 / 6)
    drawn = []
    for _ in range(4000):
        x, y = rng.multivariate_normal([0, 0], [[1, r], [r, 1]], 20).T
        drawn.append(spearmanr(x, y).statistic)
    drawn = np.array(drawn)
    for rho in (-0.1, 0.05, 0.2):
        assert equivalence_p(rho, 20, side="upper") == pytest.approx((drawn <= rho).mean(), abs=0.03)
        assert equivalence_p(rho, 20) == pytest.approx((drawn <= abs(rho)).mean(), abs=0.03)
    assert (equivalence_p(drawn, 20, side="upper") < 0.05).mean() == pytest.approx(0.05, abs=0.015)


def test_few_observations_cannot_show_equivalence():
    assert min(smallest_equivalence_p(n) for n in (4, 6, 9, 16, 30)) > 0.05
    assert smallest_equivalence_p(60) < 0.05 and smallest_equivalence_p(16, 0.6) < 0.05
    assert equivalence_p(-0.8, 16) > 0.95 and equivalence_p(-0.8, 16, side="upper") < 0.01
    assert np.isnan(equivalence_p(np.nan, 9))


def test_at_least_k_of_n():
    p = [0.2, 0.01, 0.04, 0.001]
    assert [partial_conjunction_p(p, k) for k in (1, 2, 3, 4)] == pytest.approx([0.004, 0.03, 0.08, 0.2])
    with pytest.raises(ValueError, match="k lies between 1 and the number of p-values, 4, got 5"):
        partial_conjunction_p(p, 5)


def test_bad_options_are_named():
    with pytest.raises(ValueError, match="margin lies between 0 and 1, got 1.5"):
        equivalence_p(0.1, 9, margin=1.5)
    with pytest.raises(ValueError, match="between is one of"):
        shuffled_agreement(pd.DataFrame(with_levels(0)), between="metrics")
    with pytest.raises(ValueError, match="coef is one of"):
        shuffled_agreement(pd.DataFrame(with_levels(0)), coef="pearson")


def test_the_classical_p_is_kept():
    table = pd.DataFrame(with_levels(6))
    np.testing.assert_array_equal(shuffled_agreement(table).pairs["p_classical"], agreement(table)["p"])
