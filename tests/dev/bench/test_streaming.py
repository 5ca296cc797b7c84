"""Streamed PRR: that of `prr`, however the texts are cut into chunks and ranges, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.dev.bench.streaming import _rank_weight_sums, _streamed_prr, drawn_rows, stream_once
from uetrust.evaluation.prr import prr

rows = st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=5, max_size=60).filter(
    lambda pairs: len({quality for quality, _ in pairs}) > 1
)


def cut(pairs, sizes):
    "Function that gives chunks of these sizes, the last of what is left"
    quality, uncertainty = np.array(pairs, float).T

    def chunks():
        ends = [*np.minimum(np.cumsum(sizes), len(pairs)), len(pairs)]
        for start, end in zip([0, *ends], ends):
            if end > start:
                yield dict(quality=quality[start:end], uncertainty=uncertainty[start:end])

    return chunks


@given(rows, st.lists(st.integers(1, 20), max_size=3), st.integers(2, 9))
def test_chunks_and_ranges_decide_nothing(pairs, sizes, ranges):
    value, n = _streamed_prr(cut(pairs, sizes), ranges)
    assert n == len(pairs) and value == pytest.approx(prr(*np.array(pairs, float).T).value, abs=1e-9)


def test_equal_values_share_their_weights_and_all_weights_add_up():
    weights = _rank_weight_sums(1, np.array([0.0, 0.0, 1.0]), 3)
    alone = [(1 / 1 + 1 / 2 + 1 / 3) / 3, (1 / 2 + 1 / 3) / 3, (1 / 3) / 3]
    assert weights == pytest.approx([sum(alone[:2]) / 2, sum(alone[:2]) / 2, alone[2]])
    assert _rank_weight_sums(2, np.array([5.0, 6.0]), 3) == pytest.approx(alone[1:])


def test_a_constant_quality_has_none():
    with pytest.raises(Undefined, match="all qualities are equal"):
        _streamed_prr(cut([(1, 2), (1, 3), (1, 1)], [2]), 2)


def test_nothing_stays_in_the_folder(tmp_path):
    _streamed_prr(cut([(1, 2), (0, 3), (1, 1)], []), 2, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_drawn_rows_are_the_same_at_each_call_and_a_measurement_names_their_number():
    (first,), (again,) = drawn_rows(2000)(), drawn_rows(2000)()
    assert np.array_equal(first["quality"], again["quality"])
    assert np.corrcoef(first["quality"], first["uncertainty"])[0, 1] == pytest.approx(-0.5, abs=0.06)
    found = stream_once(2000)
    assert found["rows"] == 2000 and found["peak_mb"] > 10
    assert found["prr"] == pytest.approx(prr(first["quality"], first["uncertainty"]).value, abs=1e-6)
