"""Exercises: a check answers in words whatever it gets."""

import numpy as np

from uetrust.report.lessons.exercises import check


def test_a_check_answers_in_words_whatever_it_gets():
    for answer in (None, "x", [], [1, 2], np.nan, object(), {"a": 1}, np.arange(3), 1e400, "1"):
        for expected in (0.5, "msp", [1, 2]):
            assert isinstance(check(answer, expected), str)
    assert not check(np.nan, 0.5).startswith(("Right", "Nearly"))
    assert check(1, 1.004) == "Right." and check(1, 1.006).startswith("Nearly")
