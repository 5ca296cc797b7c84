"""Several tests at once: adjusted p-values are their definitions, and gaps and order do not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.evaluation.multiple import benjamini_hochberg, holm


# --- Many tests
def slow_holm(p):
    m = len(p)
    return [min(1, max((m - sum(r < q for r in p)) * q for q in p if q <= v)) for v in p]


def slow_bh(p):
    return [min(1, min(len(p) * q / sum(r <= q for r in p) for q in p if q >= v)) for v in p]


some_p = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([0.01, 0.02, 0.04, 1.0])), min_size=1, max_size=12
)


@pytest.mark.parametrize("adjust,slow", [(holm, slow_holm), (benjamini_hochberg, slow_bh)])
@given(p=some_p)
def test_adjusted_p_is_its_definition(adjust, slow, p):
    np.testing.assert_allclose(adjust(p), slow(p), rtol=1e-12, atol=0)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
@given(p=some_p, gap=st.integers(0, 12))
def test_adjusted_p_ignores_gaps_and_order(adjust, p, gap):
    q = adjust(p)
    assert (q >= np.array(p)).all() and (q <= 1).all()
    np.testing.assert_allclose(
        adjust(np.insert(p, min(gap, len(p)), np.nan)), np.insert(q, min(gap, len(p)), np.nan), rtol=1e-12
    )
    np.testing.assert_allclose(adjust(p[::-1]), q[::-1], rtol=1e-12)
    np.testing.assert_allclose(adjust(np.array([p, p])), [adjust(p + p)[: len(p)]] * 2, rtol=1e-12)
    assert (np.diff(q[np.argsort(p)]) >= -1e-15).all()


@given(some_p)
def test_holm_promises_more_than_bh(p):
    assert (holm(p) >= benjamini_hochberg(p) - 1e-12).all()


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_nothing_to_adjust(adjust):
    assert adjust([]).shape == (0,) and np.isnan(adjust([np.nan])).all()
    for bad in (-0.1, 1.1):
        with pytest.raises(ValueError, match="lies in"):
            adjust([0.5, bad])


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
@pytest.mark.parametrize("bad", [1.5, -0.25])
def test_the_value_that_is_no_probability_is_reported(adjust, bad):
    "0 and 1 are p-values, and a gap is no mistake."
    assert adjust([0, 1]).tolist() == [0, 1]
    with pytest.raises(ValueError, match=f"found {bad}$"):
        adjust([np.nan, 0.0, 1.0, bad])
