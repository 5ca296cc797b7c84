"""Is one metric better than another: bootstraps, permutations and sign flips equal recorded outputs."""

import itertools
import random

import numpy as np
import pytest

from tests.helpers.human_correlations import LEVEL, close
from uetrust.data.loaders import undo_sort
from uetrust.evaluation import correlations as meta
from uetrust.evaluation import significance as rt

SWAP = dict(systems="rows", inputs="columns", both="rows_columns")


def test_unpaired_bootstrap_draws_documents_for_each_side(nlp, xyz):
    want = nlp["bootstrap_seed1234_B100"]["system/pearson/inputs/unpaired"]
    got = rt.bootstrap_interval(xyz[0], xyz[2], draws=100, seed=np.random.RandomState(1234), paired=False)
    close((got.lo, got.hi, *got.draws[:5]), (want["lower"], want["upper"], *want["first"]), 1e-12)
    with pytest.raises(ValueError, match="unpaired, level is 'pooled'"):
        rt.bootstrap_interval(xyz[0], xyz[2], "pooled", paired=False)


@pytest.mark.parametrize("alternative", ("two-sided", "greater"))
@pytest.mark.parametrize("swap", SWAP)
@pytest.mark.parametrize("coef", ("pearson", "kendall"))
@pytest.mark.parametrize("level", LEVEL)
def test_swapping_rows_and_columns_is_nlpstats(nlp, xyz, level, coef, swap, alternative):
    want = nlp["permutation_seed4321_B200"][f"{level}/{coef}/{swap}/{alternative}"]
    got = rt.swap_test(
        *xyz, LEVEL[level], coef, SWAP[swap], alternative, 200, np.random.RandomState(4321), plus_one=False
    )
    close(got.draws[:4], want["first"], 1e-12)
    turn = abs if alternative == "two-sided" else np.array
    equal = (
        abs(turn(got.draws) - turn(got.value)) < 1e-12
    ).mean()  # draws as large as what was seen: the peer's rounding counts some of them only
    assert got.p - equal - 1e-12 <= want["pvalue"] <= got.p + 1e-12
    if coef == "pearson":
        close(got.p, want["pvalue"], 1e-12)


@pytest.mark.parametrize("by,level", [("none", "pooled"), ("sys", "per_system"), ("item", "per_document")])
@pytest.mark.parametrize("coef", ("pearson", "spearman"))
def test_swapping_cells_is_mt_metrics_eval(mt, xyz, coef, by, level):
    want, (x, y, z) = mt[f"PermutationSigDiff/{coef}/{by}/seed77_k200"], xyz
    got = rt.swap_test(
        y, x, z, level, coef, "cells", "greater", 200, np.random.RandomState(77), plus_one=False
    )
    close(got.draws[:3], [a - b for a, b in want["first"]], 1e-12)
    close(got.value, want["delta"], 1e-12)
    assert (
        got.p - (abs(got.draws - got.value) < 1e-12).mean() - 1e-12 <= want["p"] <= got.p + 1e-12
    )  # as above
    if coef == "pearson":
        close(got.p, want["p"], 1e-12)


def test_cells_and_rows_with_columns_are_two_null_distributions(xyz):
    known = np.ones((6, 12), bool)
    rng = np.random.default_rng(0)

    def rank(swap):
        return max(
            np.linalg.matrix_rank(rt._exchanged_cells(swap, known, "pooled", rng) * 2 - 1) for _ in range(20)
        )

    assert rank("rows_columns") == 1 < rank("cells")


def test_sign_flips_and_pce_are_mt_metrics_eval(mt, xyz):
    close(rt.sign_flip_p(xyz[2]), mt["pairwise_p_values(gold,1000,seed4)"], 1e-12)
    close(rt.soft_pairwise_accuracy(xyz[0], xyz[2]), mt["one_minus_pce"], 1e-12)


@pytest.mark.parametrize("aligned", (False, True))
def test_ices_subsets_win_as_often_as_recorded(oracle, ice, aligned):
    want = oracle("evaluation.json")["ice_sigtest_seed0_wins_of_1000"]["results"]
    for dim in ("fluency", "relevance") if aligned else ("coherence",):
        stored = ice["unieval_as_stored"][dim]
        unieval = undo_sort(stored.T, ice["first_summary_index"]).T if aligned else stored
        got = rt.subset_wins(ice["ice_uniform"][dim], unieval, ice["human"][dim], seed=random.Random(0))
        assert got.wins == want[f"{dim}/spearman/unieval_{'realigned' if aligned else 'as_stored'}"]


def test_what_the_subsets_find_a_document_bootstrap_does_not(ice):
    dim = "relevance"
    unieval = undo_sort(ice["unieval_as_stored"][dim].T, ice["first_summary_index"]).T
    trio = ice["ice_uniform"][dim], unieval, ice["human"][dim]
    assert rt.subset_wins(*trio, "kendall", draws=60).wins == 60
    d = rt.bootstrap_difference(*trio, "pooled", "kendall", draws=400)
    assert d.lo < 0 < d.value < d.hi and 0.05 < d.p < 0.3


def test_a_bootstrap_without_a_seed_has_seed_0(xyz):
    for bootstrap, tables in ((rt.bootstrap_interval, xyz[1:]), (rt.bootstrap_difference, xyz)):
        close(bootstrap(*tables, draws=5).draws, bootstrap(*tables, draws=5, seed=0).draws, 0)


def test_a_global_seed_is_neither_read_nor_set(xyz):
    np.random.seed(5)
    before = np.random.get_state()[1].copy()
    a, b = (rt.bootstrap_interval(xyz[0], xyz[2], draws=5).draws for _ in range(2))
    close(a, b, 0)
    assert (np.random.get_state()[1] == before).all() and not np.allclose(
        a, rt.bootstrap_interval(xyz[0], xyz[2], draws=5, seed=1).draws
    )


@pytest.mark.parametrize(
    "level,coef",
    [
        ("pooled", "spearman"),
        *itertools.product(("per_document", "system"), ("pearson", "spearman", "kendall")),
    ],
)
@pytest.mark.parametrize("seed", range(6))
def test_correlations_of_drawn_documents_are_those_of_correlating_anew(seed, level, coef):
    rng = np.random.default_rng(seed)
    a, b, z = (rng.integers(0, 4 + 3 * seed, (3, 14)).astype(float) for _ in range(3))
    a[0, 2] = z[1, 5] = np.nan
    if seed == 5:
        a[:] = 1
    if seed == 4:
        a[0] = b[1, 3] = np.inf if level == "system" else np.nan
    stream = np.random.default_rng(9)
    samples = [rt.bootstrap_sample([a, b, z], "documents", stream) for _ in range(60)]
    with np.errstate(invalid="ignore"):
        want = np.array(
            [[meta.correlation_level(level)(x, s[2], coef).value for x in s[:2]] for s in samples]
        )
        got = rt.bootstrap_interval(a, z, level, coef, draws=60, seed=9)
        d, gaps = rt.bootstrap_difference(a, b, z, level, coef, draws=60, seed=9), want[:, 0] - want[:, 1]
    np.testing.assert_allclose(got.draws, want[~np.isnan(want[:, 0]), 0], atol=1e-12)
    assert got.undefined == np.isnan(want[:, 0]).sum() and (seed != 5 or got.undefined == 60)
    np.testing.assert_allclose(d.draws, gaps[~np.isnan(gaps)], atol=1e-12)
    assert d.undefined == np.isnan(gaps).sum() == 60 - len(d.draws)


def test_means_of_drawn_documents_are_the_means_of_these_documents():
    rng = np.random.default_rng(0)
    x = rng.choice([0.1, 0.2, 0.3, 0.7, np.nan], (5, 12))
    cols = rng.integers(0, 12, (40, 12))
    got = meta.resampled_system_means(x, np.stack([np.bincount(c, minlength=12) for c in cols]))
    np.testing.assert_array_equal(got, [meta._system_means(x[:, c]) for c in cols])


def test_drawn_documents_are_counted_in_blocks(monkeypatch):
    x, z = np.random.default_rng(0).normal(size=(2, 4, 20))
    whole = rt.bootstrap_interval(x, z, "pooled", "spearman", draws=50)
    monkeypatch.setattr(rt, "WORK_ARRAY_SIZE", 200)
    np.testing.assert_array_equal(
        rt.bootstrap_interval(x, z, "pooled", "spearman", draws=50).draws, whole.draws
    )
