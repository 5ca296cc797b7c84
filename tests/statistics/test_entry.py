"""Entries of statistics: every leaf of a score is made by one of them."""

from tests.helpers.registered import SCORES, reg
from uetrust.core.run import required_inputs
from uetrust.statistics.texts import MADE_BY, STATISTICS


def test_every_leaf_is_made_by_a_reading():
    leaves = {x for n in SCORES for x in required_inputs(n) if x not in reg or reg[x].kind == "stat"}
    assert leaves <= set(MADE_BY) and all(STATISTICS[MADE_BY[leaf]].cost for leaf in leaves)
