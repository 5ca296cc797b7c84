"""Exercises: a check answers in words whatever it gets."""

import re

import numpy as np
import pytest

from uetrust.report.lessons import exercises
from uetrust.report.lessons.exercises import check


def test_a_check_answers_in_words_whatever_it_gets():
    for answer in (None, "x", [], [1, 2], np.nan, object(), {"a": 1}, np.arange(3), 1e400, "1"):
        for expected in (0.5, "msp", [1, 2]):
            assert isinstance(check(answer, expected), str)
    assert not check(np.nan, 0.5).startswith(("Right", "Nearly"))
    assert check(1, 1.004) == "Right." and check(1, 1.006).startswith("Nearly")


@pytest.mark.parametrize("tolerance", [0.005, 0.1])
@pytest.mark.parametrize("side, direction", [(1, "high"), (-1, "low")])
def test_a_number_is_nearly_right_up_to_five_times_as_far_as_a_right_one(tolerance, side, direction):
    steps = [0.9, 1.1, 4.9, 5.1]
    verdicts = [check(7 + side * step * tolerance, 7, tolerance) for step in steps]
    assert [text.split()[0].strip(".:") for text in verdicts] == ["Right", "Nearly", "Nearly", "Not"]
    assert f"a little too {direction}" in verdicts[2] and verdicts[3].endswith(f"is too {direction}.")


def test_every_sentence_quotes_as_much_of_a_long_answer():
    expected = "prediction-rejection ratio of summaries and of translations"
    nearly, wrong, word = (
        check(expected[:-1], expected),
        check(expected[::-1], expected),
        check(expected, 0.5),
    )
    assert [text.split()[0] for text in (nearly, wrong, word)] == ["Nearly:", "Not", "One"]
    quoted = [re.search("'(.*)'", text)[1] for text in (nearly, wrong, word)]
    assert len(set(map(len, quoted))) == 1 and len(quoted[0]) < len(expected)
    assert expected.startswith(quoted[0]) and expected[::-1].startswith(quoted[1]) and quoted[2] == quoted[0]


def test_without_the_key_an_answer_is_not_checked(tmp_path, monkeypatch):
    "As in the students' part of the course, and in an installed package"
    monkeypatch.setattr(exercises, "root", lambda: tmp_path)
    key = exercises.expected("a_longer_answer", 1)
    assert check(0.6, *key) == check("x", *key) == "Not checked: this copy has no key. Your lecturer has it."
    assert check(None, *key).startswith("No answer yet")
