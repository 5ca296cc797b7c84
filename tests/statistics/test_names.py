"""Names of statistics: every leaf is made by a reading."""

from tests.helpers.registered import SCORES, reg
from uetrust.core.run import required_inputs
from uetrust.statistics.names import STATISTIC_COSTS, STORED_IN


def test_every_leaf_is_made_by_a_reading():
    leaves = {x for n in SCORES for x in required_inputs(n) if x not in reg or reg[x].kind == "stat"}
    assert leaves <= set(STORED_IN) and set(STORED_IN.values()) <= set(STATISTIC_COSTS)
