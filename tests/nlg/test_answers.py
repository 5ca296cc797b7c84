"""Answers against gold answers: the definitions word by word and several alternatives."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.answers import slow_f1, slow_words, texts
from uetrust.core.checks import Undefined
from uetrust.nlg.answers import embedding_cosine, exact_match, lexical_match, token_f1
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.texts.providers import shipped_models

METRICS = dict(exact_match=exact_match, lexical_match=lexical_match, token_f1=token_f1)
golds = st.lists(texts.filter(str.strip), min_size=1, max_size=3)


def slow_match(a, b):
    return float(any(a[i : i + len(b)] == b for i in range(len(a))) and b != [])


@given(texts, golds)
def test_values_are_those_of_a_slow_definition(text, alternatives):
    words, golds = slow_words(text), list(map(slow_words, alternatives))
    assert token_f1(text, alternatives) == pytest.approx(max(slow_f1(words, gold) for gold in golds))
    assert lexical_match(text, alternatives) == max(slow_match(words, gold) for gold in golds)
    assert exact_match(text, alternatives) == float(any(words == gold for gold in golds))


@given(texts, golds, texts.filter(str.strip))
def test_another_alternative_never_lowers_a_value_and_their_order_is_nothing(text, alternatives, more):
    for metric in METRICS.values():
        value = metric(text, alternatives)
        assert value <= metric(text, [more, *alternatives]) == metric(text, [*alternatives, more])
        assert value == max(metric(text, gold) for gold in alternatives)


@given(texts.filter(slow_words), golds)
def test_an_exact_match_is_a_lexical_match_and_has_f1_of_1(text, alternatives):
    if exact_match(text, alternatives):
        assert token_f1(text, alternatives) == lexical_match(text, alternatives) == 1
    assert exact_match(text, text) == lexical_match(f"Yes: {text} it is", text) == 1


@pytest.mark.parametrize("metric", METRICS.values())
def test_without_a_gold_answer_there_is_no_value(metric):
    for nothing in ("", " ", [" ", ""]):
        with pytest.raises(Undefined, match="empty gold answer"):
            metric("Paris", nothing)
    assert metric("Paris", ["", "Paris"]) == 1


def test_an_alternative_without_a_word_stands_in_no_answer():
    assert [metric("Paris", "The") for metric in METRICS.values()] == [0, 0, 0]
    assert [metric("An", "The") for metric in METRICS.values()] == [1, 0, 1]


def test_a_part_of_a_word_is_no_match():
    assert lexical_match("It rained in Parisian streets.", "Paris") == 0
    assert lexical_match("It rained in Paris, France", "Paris France") == 1


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=5))
def test_the_cosine_is_that_of_the_angle(rows):
    a, b = (np.array(column, float) for column in zip(*rows))
    if not (a.any() and b.any()):
        with pytest.raises(Undefined, match="no direction"):
            embedding_cosine(a, b)
        return
    want = sum(x * y for x, y in rows) / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5
    assert embedding_cosine(a, b) == pytest.approx(want, abs=1e-12)
    assert embedding_cosine(a, a) == pytest.approx(1) and embedding_cosine(a, -3 * a) == pytest.approx(-1)
    assert -1 <= embedding_cosine(a, b) <= 1


def test_the_nearest_of_several_gold_answers_counts():
    rows = dict(id=["a", "b"], hypothesis=["Rain fell.", "Dogs ran."])
    golds = [["Snow melted slowly.", "Rain fell."], ["Cats ran.", "Fire burned the old mill."]]
    names = [*METRICS, "embedding_cosine"]

    def values(**given):
        found = compute_metrics(pd.DataFrame(rows | given), shipped_models(), names, progress=False)
        return found.wide.set_index("id")[names]

    both = values(references=golds)
    alone = [values(reference=[gold[k] for gold in golds]) for k in (0, 1)]
    np.testing.assert_allclose(both, np.maximum(*alone), atol=1e-6)
    assert both.loc["a"].tolist() == pytest.approx([1, 1, 1, 1], abs=1e-6)
    assert (alone[0] != alone[1]).any().all()
