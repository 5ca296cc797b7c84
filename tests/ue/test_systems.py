"""Answers of other systems: the definitions word by word."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.answers import slow_f1, slow_words, texts
from uetrust.core.checks import Undefined
from uetrust.core.run import ScoreRun, compute_score
from uetrust.statistics.scores import load_scores
from uetrust.ue import systems

reg = load_scores()
OF_WORDS = [systems.other_systems_f1, systems.other_systems_jaccard]


def slow_jaccard(a, b):
    either = [word for word in dict.fromkeys(a + b)]
    return sum(word in a and word in b for word in either) / len(either) if either else 1.0


@given(texts, st.lists(texts, min_size=1, max_size=4))
def test_values_are_those_of_a_slow_definition(answer, others):
    for method, likeness in zip(OF_WORDS, (slow_f1, slow_jaccard)):
        values = [likeness(slow_words(answer), slow_words(other)) for other in others]
        assert method(answer, others) == pytest.approx(1 - sum(values) / len(values), abs=1e-12)
        assert method(answer, others) == pytest.approx(method(answer, others[::-1]), abs=1e-12)
        assert 0 <= method(answer, others) <= 1 and method(answer, [answer] * 3) == 0
    assert systems.answer_length(answer) == len(slow_words(answer))


@given(texts, texts)
def test_of_two_systems_each_is_as_far_from_the_other(one, other):
    for method in OF_WORDS:
        assert method(one, [other]) == method(other, [one])


@given(st.integers(0, 99), st.integers(1, 4))
def test_the_cosine_is_the_mean_over_the_others(seed, others):
    vectors = np.random.default_rng(seed).normal(size=(1 + others, 3))
    first, *rest = vectors
    cosines = [first @ v / np.sqrt(first @ first * (v @ v)) for v in rest]
    assert systems.other_systems_cosine(vectors) == pytest.approx(1 - np.mean(cosines), abs=1e-12)
    assert systems.other_systems_cosine(vectors * 7) == pytest.approx(1 - np.mean(cosines), abs=1e-12)
    assert systems.other_systems_cosine([first] * 3) == pytest.approx(0, abs=1e-15)


def test_without_another_system_there_is_a_note_and_no_value():
    run = ScoreRun(
        "ab", reg, answer=["Paris"] * 2, other_texts=[["Paris"], []], other_vectors=[np.eye(2), np.eye(2)[:1]]
    )
    for name in ("other_systems_f1", "other_systems_jaccard", "other_systems_cosine"):
        found = compute_score(run, name)
        assert np.isfinite(found["value"][0]) and np.isnan(found["value"][1])
        assert found["note"].tolist() == ["", "no other system has an answer to this question"]
    with pytest.raises(Undefined, match="has no direction"):
        systems.other_systems_cosine([[1, 0], [0, 0]])
