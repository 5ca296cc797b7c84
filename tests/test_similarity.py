"""Lexical similarity: symmetric, equal for equal texts, what a slow double loop gives, and taken apart once."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import sentence_bleu

from uetrust.core.registry import reg
from uetrust.core.run import Run
from uetrust.nlg.overlap import rouge_1, rouge_2, rouge_l
from uetrust.stats.similarity import in_order, jaccard, rouge_words, sample_stems

words = st.lists(st.sampled_from("rain rains fell on the Hall Ünder".split()), max_size=7)
texts = st.lists(words.map(" ".join), min_size=1, max_size=6)
ROUGE = dict(rouge_1_pairs=rouge_1, rouge_2_pairs=rouge_2, rouge_l_pairs=rouge_l)


def pairs(name, ts):
    return Run([0], reg, sample_texts=[ts])[name][0]


@pytest.mark.parametrize("name", ["jaccard", *ROUGE])
@given(ts=texts)
def test_a_matrix_is_symmetric_bounded_and_follows_its_texts(name, ts):
    s = pairs(name, ts)
    assert s.shape == (len(ts), len(ts)) and np.array_equal(s, s.T) and 0 <= s.min() and s.max() <= 1
    for i, a in enumerate(ts):
        for j, b in enumerate(ts):
            if a == b:
                assert np.array_equal(s[i], s[j])
    order = list(range(len(ts)))[::-1]
    assert np.array_equal(pairs(name, [ts[i] for i in order]), s[np.ix_(order, order)])


@given(texts)
def test_shared_words_are_those_of_a_double_loop(ts):
    def naive(a, b):
        a, b = a.lower().split(), b.lower().split()
        either = set(a) | set(b)
        return sum(w in a and w in b for w in either) / len(either) if either else 1

    assert np.allclose(jaccard([ts])[0], [[naive(a, b) for b in ts] for a in ts])


@pytest.mark.parametrize("name", ROUGE)
@given(ts=texts)
def test_rouge_is_that_of_the_package_where_both_texts_have_enough_words(name, ts):
    found, enough = pairs(name, ts), [len(w) > ("2" in name) for w in sample_stems([ts])[0]]
    for i, a in enumerate(ts):
        for j, b in enumerate(ts):
            if enough[i] and enough[j]:
                assert found[i, j] == pytest.approx(ROUGE[name](a, b), abs=1e-12)
            else:
                assert found[i, j] == (rouge_words()(a) == rouge_words()(b))


@given(ts=texts)
def test_bleu_is_that_of_the_package(ts):
    for i, a in enumerate(ts):
        for j, b in enumerate(ts):
            n = min(len(a.split()), len(b.split()), 4)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if n:
                    assert pairs("bleu_pairs", ts)[i, j] == pytest.approx(
                        sentence_bleu([b.split()], a.split(), weights=[1 / n] * n), abs=1e-12
                    )


@pytest.mark.parametrize("name", [*ROUGE, "bleu_pairs"])
@given(ts=texts)
def test_equal_texts_are_alike_whatever_they_hold(name, ts):
    w = pairs(name, ts + ts)
    assert (
        np.diag(w, len(ts)) == pytest.approx(np.ones(len(ts)), abs=1e-12)
        and (w >= 0).all()
        and (w <= 1 + 1e-12).all()
    )


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=1, max_size=4))
def test_the_longest_common_subsequence_is_that_of_the_textbook(ws):
    def naive(a, b):
        t = np.zeros((len(a) + 1, len(b) + 1), int)
        for i, x in enumerate(a):
            for j, y in enumerate(b):
                t[i + 1, j + 1] = t[i, j] + 1 if x == y else max(t[i, j + 1], t[i + 1, j])
        return t[-1, -1]

    assert in_order(ws).tolist() == [[naive(a, b) for b in ws] for a in ws]


def test_a_longest_common_subsequence_of_more_words_than_a_machine_word_has_bits():
    a = [str(i % 97) for i in range(400)]
    assert in_order([a, a[::2], ["x", *a]])[0].tolist() == [400, 200, 400]
