"""Metrics of fact checkers: the aggregation of chunks, claims and tokens, and their direction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.nlg import checkers

numbers = st.floats(-20, 20)
shapes = st.tuples(st.integers(1, 4), st.integers(1, 4), st.just(2))


def probability(two):  # Of the second class, by its definition
    return 1 / (1 + np.exp(two[0] - two[1]))


@given(shapes.flatmap(lambda shape: arrays(float, shape, elements=numbers)))
def test_minicheck_takes_the_best_chunk_of_each_claim(logits):
    best = [max(probability(chunk[j]) for chunk in logits) for j in range(logits.shape[1])]
    assert checkers.minicheck(logits) == pytest.approx(sum(best) / len(best))
    assert checkers.minicheck_least(logits) == pytest.approx(min(best))
    assert checkers.minicheck_whole(logits[:, :1]) == pytest.approx(best[0])


@given(st.integers(1, 6).flatmap(lambda n: arrays(float, (n, 2), elements=numbers)))
def test_lettucedetect_takes_the_worst_token_and_the_share_of_bad_ones(logits):
    each = [probability(token) for token in logits]
    assert checkers.lettucedetect(logits) == pytest.approx(max(each))
    assert checkers.lettucedetect_share(logits) == (logits.argmax(1) == 1).mean()


@given(arrays(float, 2, elements=numbers))
def test_hhem_is_the_probability_of_the_second_class_and_seahorse_of_the_first(logits):
    assert checkers.hhem(logits) == pytest.approx(probability(logits))
    for question in checkers.SEAHORSE_QUESTIONS:
        score = reg[f"seahorse_{question}"].fn
        assert score(logits) == score(**{f"seahorse_{question}_logp": logits})
        assert score(logits) == pytest.approx(probability(logits[::-1]))


@pytest.mark.parametrize(
    ("metric", "value", "why"),
    [
        ("minicheck", np.zeros((2, 0, 2)), "the text has no sentence"),
        ("minicheck_least", np.zeros((0, 2, 2)), "the source has no sentence"),
        ("minicheck_whole", np.zeros((0, 1, 2)), "the source has no sentence"),
        ("lettucedetect", None, "the text alone fills the window"),
        ("lettucedetect_share", np.zeros((0, 2)), "the text has no token"),
    ],
)
def test_without_anything_to_judge_there_is_no_value(metric, value, why):
    with pytest.raises(Undefined, match=why):
        reg[metric].fn(value)


def test_each_metric_says_its_direction_and_each_question_its_checkpoint():
    signs = {name: reg[name].sign for name in ("minicheck", "hhem", "lettucedetect", "lettucedetect_share")}
    assert signs == dict(minicheck=1, hhem=1, lettucedetect=-1, lettucedetect_share=-1)
    for number, question in enumerate(checkers.SEAHORSE_QUESTIONS, 1):
        assert f"google/seahorse-large-q{number} " in reg[f"seahorse_{question}"].cite
