"""Passes of a generator: those that cannot be are refused, and each gives the kinds asked for."""

from dataclasses import FrozenInstanceError, replace

import pytest

from uetrust.statistics.generator import ForwardPass, get_pass
from uetrust.statistics.table import texts_by_shard


def test_passes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="got \\['best'\\]"):
        ForwardPass(("best",))
    with pytest.raises(ValueError, match="after one of .* got 'lunch'"):
        ForwardPass(after="lunch")
    with pytest.raises(LookupError, match="no pass 'owm'; there are"):
        get_pass("owm")


def test_parts_give_the_kinds_asked_for(repeated):
    assert [list(df["kind"]) for df in texts_by_shard(repeated, ("greedy",)).values()] == [
        ["greedy", "greedy"]
    ]


def test_a_pass_cannot_be_changed_for_everyone_and_is_changed_as_a_copy():
    shared = get_pass("conditional")
    with pytest.raises(FrozenInstanceError):
        shared.topk = 3
    assert replace(shared, topk=3).topk == 3 and get_pass("conditional").topk == 10
    assert {shared: "read"}[replace(shared)] == "read"
