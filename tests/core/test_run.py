"""A run of scores: a statistic is computed once, and what is lacking is what stops a score."""

import pytest
from hypothesis import given
from hypothesis import settings as hs
from hypothesis import strategies as st

from uetrust.core.registry import Registry
from uetrust.core.run import ScoreRun, compute_score
from uetrust.statistics.scores import load_scores

reg = load_scores()
SCORES = list(reg.of("ue"))


@pytest.mark.parametrize("name", SCORES)
def test_what_is_lacking_is_what_stops_a_score(name):
    "Without any leaf the first lookup fails on one that `lacks` names; with every leaf it names nothing."
    empty = ScoreRun(["a"])
    missing = empty.lacks(name)
    assert missing and not ScoreRun(["a"], **{k: [None] for k in missing}).lacks(name)
    with pytest.raises(LookupError) as e:
        compute_score(empty, name)
    assert any(f"no {k!r}" in str(e.value) for k in missing)


@given(values=st.lists(st.floats(-5, 5), min_size=1, max_size=6))
@hs(max_examples=20, deadline=None)
def test_a_statistic_is_computed_once_and_only_on_request(values):
    calls, registry = [], Registry()

    @registry.add(kind="stat", unit="", cite="test")
    def double(x: list) -> list:
        calls.append("double")
        return [2 * v for v in x]

    @registry.add(kind="stat", unit="", cite="test")
    def never(x: list) -> list:
        raise AssertionError

    for n in ("one", "two"):

        def f(double: float) -> float:
            return double

        f.__name__ = n
        registry.add(f, kind="ue", unit="", cite="test")
    run = ScoreRun(range(len(values)), registry, x=values)
    assert compute_score(run, "one")["value"].tolist() == compute_score(run, "two")["value"].tolist() == [
        2 * v for v in values
    ] and calls == ["double"]
