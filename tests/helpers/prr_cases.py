"""What the tests of prr share."""

import numpy as np
from hypothesis import strategies as st

CASES = [
    "toy6",
    "continuous20",
    "tied_uncertainty50",
    "judge60_two_sentinels",
    "binary40",
    "constant10",
    "ice_coherence128",
]


def floats(values):
    return np.array([np.nan if value in (None, "NaN") else float(value) for value in values])


scores = st.lists(st.tuples(st.integers(-4, 4), st.integers(0, 5)), min_size=5, max_size=25).filter(
    lambda p: len({quality for quality, _ in p}) > 1
)
AREAS = [("mean", 1.0), ("sum", 1.0), ("mean", 0.5)]


def split(pairs):
    return (np.array(x, float) for x in zip(*pairs))
