"""Hybrid methods: ranks and percentiles, their borders, and what does not count for others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from tests.helpers.density import FULL, THIN, cloud, numbers
from uetrust.core.checks import Undefined
from uetrust.core.run import ScoreRun, compute_score, required_inputs, required_scores
from uetrust.statistics.scores import load_scores
from uetrust.ue import hybrid
from uetrust.ue.density import mahalanobis_distance_he2024, train_gaussian_he2024
from uetrust.ue.hybrid import (
    held_out_split,
    huq,
    huq_rank,
    hybrid_ranks,
    percentile_among,
    ppl_md,
    ppl_md_lmp,
    train_held_out,
    train_held_out_lmp,
)

reg = load_scores()


def ppl_md_percentile(logp, known, states, train):
    return hybrid.ppl_md_percentile(logp, known, states, train_held_out(train))


def ppl_md_percentile_lmp(logp, known, states, train):
    return hybrid.ppl_md_percentile_lmp(
        logp, known, states, train_held_out_lmp(train, train_gaussian_he2024(train))
    )


@pytest.mark.parametrize("name", [*FULL, THIN])
def test_percentiles_with_perplexity(cases, name):
    case = cases[name]
    given = case.logp, case.train_perplexity, case.items, case.train
    got = [ppl_md_lmp(x) for x in ppl_md_percentile_lmp(*given)]
    known = len(
        held_out_split(len(case.train))[1]
    )  # a distance near that of a held-out state may fall on its other side where the jitter decides
    np.testing.assert_allclose(
        got, case.out["PPLMDSeq_decoder_MD"], rtol=0, atol=1 / known if name == THIN else 1e-12
    )
    fit, out = held_out_split(len(case.train))

    def relative(x, train):
        return mahalanobis_distance_he2024(x, train) - mahalanobis_distance_he2024(x, case.background)

    perplexity = numbers([-np.mean(logp) for logp in case.logp])
    joint = (
        percentile_among(perplexity, case.train_perplexity)
        + percentile_among(relative(case.states, case.train), relative(case.train[out], case.train[fit]))
    ) / 2
    np.testing.assert_allclose(
        joint, case.out["PPLMDSeq_decoder_RMD"], rtol=0, atol=1 / known if name == THIN else 1e-12
    )
    mine = numbers([ppl_md(x) for x in ppl_md_percentile(*given)])
    assert (0 <= mine).all() and (mine <= 1).all()
    if name == "wellposed_d8":
        assert spearmanr(mine, got).statistic > 0.99


def test_every_state_of_the_held_out_part_counts_once():
    fit, out = held_out_split(250)
    assert (
        len(out) == 75
        and sorted([*fit, *out]) == list(range(250))
        and np.array_equal(out, held_out_split(250)[1])
    )


# Ranks
def naive_huq(distances, surprisals, alpha=0.1, near=0.1, unclear=0.9):
    n = len(distances)

    def rank(x, among):
        return sum(y < x for y in among) + (sum(y == x for y in among) + 1) / 2

    close = [i for i in range(n) if rank(distances[i], distances) <= near * n]

    def one(i):
        if i not in close:
            return (1 - alpha) * rank(distances[i], distances) + alpha * rank(surprisals[i], surprisals)
        return (
            rank(surprisals[i], surprisals)
            if rank(surprisals[i], surprisals) > unclear * n
            else rank(surprisals[i], [surprisals[j] for j in close])
        )

    return [one(i) for i in range(n)]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40),
    st.sampled_from([(0.1, 0.1, 0.9), (0.5, 0.3, 0.6)]),
)
def test_hybrid_ranks_are_those_of_the_definition(pairs, options):
    distances, surprisals = np.array(pairs, float).T
    np.testing.assert_allclose(
        hybrid_ranks(distances, surprisals, *options), naive_huq(distances, surprisals, *options)
    )
    np.testing.assert_allclose(
        hybrid_ranks(distances[::-1], surprisals[::-1], *options),
        naive_huq(distances, surprisals, *options)[::-1],
    )


def test_the_borders_of_the_shares_belong_to_them():
    distances, nine = (
        np.arange(10.0),
        np.array([8.0, 0, 1, 2, 3, 4, 5, 6, 7, 9]),
    )  # the nearest item has rank 1 of 10 by distance and 9 of 10 by surprisal
    assert hybrid_ranks(distances, nine)[0] == 1 and hybrid_ranks(distances, distances[::-1])[0] == 10
    np.testing.assert_allclose(hybrid_ranks(distances, nine), naive_huq(distances, nine))


def test_items_without_distance_or_tokens_do_not_count_for_others():
    got = huq_rank([3.0, np.nan, 1.0, 2.0, 9.0], [1.0, 9.0, 3.0, np.nan, 5.0])
    assert np.isnan(got).tolist() == [False, True, False, True, False]
    assert [got[i] for i in (0, 2, 4)] == hybrid_ranks(np.array([3.0, 1, 9]), np.array([1.0, 3, 5])).tolist()
    with pytest.raises(Undefined, match="no place"):
        huq(got[1])
    train = cloud(0, 40, 2)
    both = ppl_md_percentile([[], [-1.0]], [0.5, 2], [train[0], np.full(2, np.nan)], train)
    assert np.isnan(both).all()
    with pytest.raises(Undefined, match="no place"):
        ppl_md(both[0])


def test_percentiles():
    assert percentile_among([1, 2, 2.5, np.nan], [3, 2, 1, 2]).tolist()[:3] == [0.25, 0.75, 0.75]
    with pytest.raises(ValueError, match="got 2 of which 1 are not numbers"):
        percentile_among([1], [np.nan, 1])
    with pytest.raises(ValueError, match="got 0"):
        percentile_among([1], [])


def test_hybrid_ranks_wait_for_the_scores_of_all():
    assert required_scores("huq", reg) == {"md", "perplexity"} and required_inputs("huq", reg) == [
        "md",
        "perplexity",
    ]
    table = compute_score(ScoreRun("abc", md=[1.0, np.nan, 2.0], perplexity=[3.0, 1.0, 4.0]), "huq")
    assert (
        table["value"].tolist()[::2] == hybrid_ranks(np.array([1.0, 2]), np.array([3.0, 4])).tolist()
        and np.isnan(table["value"][1])
        and "no place" in table["note"][1]
    )


def test_hybrid_ranks_that_are_equal_are_equal_to_the_last_bit():
    "Twenty times the rank is a whole number, so no two ranks are closer than 1/20."
    rng = np.random.default_rng(0)
    ranks = hybrid_ranks(rng.permutation(np.arange(500.0)), rng.permutation(np.arange(500.0)))
    assert len(set(ranks)) == len(set(np.rint(ranks * 20))) < 500


def test_mean_percentiles_that_are_equal_are_equal_to_the_last_bit():
    rng = np.random.default_rng(0)
    states, train = list(rng.normal(size=(4000, 2))), rng.normal(size=(200, 2))
    logp = [[-x] for x in rng.exponential(size=4000)]
    got = ppl_md_percentile(logp, rng.exponential(size=190), states, train)
    assert len(set(got)) == len(set(np.round(got, 12))) < 4000
