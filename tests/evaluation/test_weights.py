"""Weights of a PRR: sums of them are recorded identities, and counting equals copying."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.prr_cases import AREAS, scores, split
from uetrust.evaluation.prr import prr
from uetrust.evaluation.resample import bootstrap_counts, resampled_areas
from uetrust.evaluation.weights import (
    harmonic_numbers,
    item_weights,
    midranks,
    prefix_weight,
    rank_weights,
    tie_order,
)


# -- closed forms
def test_recorded_identities(oracle):
    for n, want in oracle("evaluation.json")["prr_null"]["identities"].items():
        n, bad_first = int(n), np.r_[0.0, np.ones(int(n) - 1)]
        weights = {area: rank_weights(n, area) for area in ("mean", "sum")}
        assert harmonic_numbers(n)[n] == pytest.approx(want["H_N"], rel=1e-12)
        assert ((weights["mean"] - weights["mean"].mean()) ** 2).sum() == pytest.approx(
            want["S_w_mean"], rel=1e-10
        )
        assert ((weights["sum"] - weights["sum"].mean()) ** 2).sum() == pytest.approx(
            want["S_w_sum"], rel=1e-10
        )
        assert prr(bad_first, np.arange(n)).value == pytest.approx(want["min_prr_mean"], rel=1e-10)


@given(scores, st.sampled_from(AREAS), st.integers(0, 2**32 - 1))
def test_counting_equals_copying(pairs, area_and_rejection, seed):
    quality, uncertainty = split(pairs)
    area, max_rejection = area_and_rejection
    counts = bootstrap_counts(len(quality), 4, np.random.default_rng(seed))
    got = resampled_areas(tie_order(uncertainty), counts, -quality[:, None], area, max_rejection)[:, 0]
    for row, value in zip(counts, got):
        drawn = np.repeat(np.arange(len(quality)), row)
        assert value == pytest.approx(
            item_weights(tie_order(uncertainty[drawn]), rank_weights(len(drawn), area, max_rejection))
            @ -quality[drawn],
            abs=1e-10,
        )


def test_prefix_weight_at_a_million():
    n = 1_000_000
    prefixes = np.array([1, 2, 1000, n // 2, n])
    np.testing.assert_allclose(
        prefix_weight(prefixes, n), np.cumsum(rank_weights(n))[prefixes - 1], rtol=1e-9
    )


MARKS = st.sampled_from([0.0, -0.0, 1.5, 2, np.nan, np.inf, -np.inf])


@given(st.integers(0, 6).flatmap(lambda n: st.lists(st.lists(MARKS, min_size=n, max_size=n), min_size=1)))
def test_midranks_are_those_of_scipy(rows):
    from scipy.stats import rankdata

    rows = np.array(rows, float).reshape(len(rows), -1)
    assert np.array_equal(midranks(rows), rankdata(rows, axis=-1), equal_nan=True)
    assert np.array_equal(midranks(rows[0]), rankdata(rows[0]), equal_nan=True)
