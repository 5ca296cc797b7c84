"""Metrics of translations: MetricX is clipped to its scale, and less is better."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.registry import reg
from uetrust.nlg import translations

PENALTIES = ("metricx_24", "metricx_24_qe", "metricx_23", "metricx_23_qe")


@given(st.floats(-1e6, 1e6))
def test_a_penalty_lies_between_0_and_25_and_a_rating_is_left_alone(value):
    for name in PENALTIES:
        assert getattr(translations, name)(value) == sorted((0, value, 25))[1]
    assert translations.comet(value) == translations.comet_kiwi(value) == value


@pytest.mark.parametrize("name", PENALTIES)
def test_a_penalty_is_better_the_smaller_it_is(name):
    assert reg[name].sign == -1 and reg[name].scale == (0, 25)


def test_ratings_are_better_the_larger_they_are():
    assert (reg["comet"].sign, reg["comet_kiwi"].sign) == (1, 1)
