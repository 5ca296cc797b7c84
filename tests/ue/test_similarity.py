"""Lexical similarity: symmetric, 1 for equal texts, and equal to a slow double loop."""

import unicodedata
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import sentence_bleu

from tests.faults.scripts import SCRIPTS
from tests.helpers.scripts import METHODS, certain, graded, table_of
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun
from uetrust.nlg.overlap import rouge_1, rouge_2, rouge_l
from uetrust.ue.similarity import (
    jaccard,
    lcs_lengths,
    rouge_tokenizer,
    sample_stems,
    unicode_tokenizer,
    unicode_words,
    use_tokenizer,
)

words = st.lists(st.sampled_from("rain rains fell on the Hall Ünder".split()), max_size=7)
drawn_texts = st.lists(words.map(" ".join), min_size=1, max_size=6)
texts = drawn_texts.filter(lambda drawn: sum(not text for text in drawn) < 2)  # Else nothing is compared
ROUGE = dict(rouge_1_pairs=rouge_1, rouge_2_pairs=rouge_2, rouge_l_pairs=rouge_l)


def pairs(name, drawn):
    return ScoreRun([0], reg, sample_texts=[drawn])[name][0]


@pytest.mark.parametrize("name", ["jaccard", *ROUGE])
@given(drawn=texts)
def test_a_matrix_is_symmetric_bounded_and_follows_its_texts(name, drawn):
    similarity = pairs(name, drawn)
    assert (
        similarity.shape == (len(drawn), len(drawn))
        and np.array_equal(similarity, similarity.T)
        and 0 <= similarity.min()
        and similarity.max() <= 1
    )
    for i, first in enumerate(drawn):
        for j, second in enumerate(drawn):
            if first == second:
                assert np.array_equal(similarity[i], similarity[j])
    order = list(range(len(drawn)))[::-1]
    assert np.array_equal(pairs(name, [drawn[i] for i in order]), similarity[np.ix_(order, order)])


@pytest.mark.parametrize("name", ["jaccard", *ROUGE, "bleu_pairs"])
@given(drawn=drawn_texts)
def test_a_source_with_two_texts_without_words_is_undefined(name, drawn):
    nothing = sum(not text for text in drawn)
    found = pairs(name, drawn)
    assert isinstance(found, Undefined) == (nothing > 1)
    assert nothing < 2 or str(found).startswith(f"{nothing} of its samples have no word")


@given(texts)
def test_shared_words_are_those_of_a_double_loop(drawn):
    def naive(first, second):
        first, second = first.lower().split(), second.lower().split()
        either = set(first) | set(second)
        return sum(word in first and word in second for word in either) / len(either) if either else 1

    assert np.allclose(jaccard([drawn])[0], [[naive(first, second) for second in drawn] for first in drawn])


@pytest.mark.parametrize("name", ROUGE)
@given(drawn=texts)
def test_rouge_is_that_of_the_package_where_both_texts_have_enough_words(name, drawn):
    found, enough = pairs(name, drawn), [len(stems) > ("2" in name) for stems in sample_stems([drawn])[0]]
    for i, first in enumerate(drawn):
        for j, second in enumerate(drawn):
            if enough[i] and enough[j]:
                assert found[i, j] == pytest.approx(ROUGE[name](first, second), abs=1e-12)
            else:  # One of them has too few
                assert found[i, j] == (rouge_tokenizer()(first) == rouge_tokenizer()(second))


@given(drawn=texts)
def test_bleu_is_that_of_the_package(drawn):
    for i, hypothesis in enumerate(drawn):
        for j, reference in enumerate(drawn):
            n = min(len(hypothesis.split()), len(reference.split()), 4)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if n:
                    assert pairs("bleu_pairs", drawn)[i, j] == pytest.approx(
                        sentence_bleu([reference.split()], hypothesis.split(), weights=[1 / n] * n), abs=1e-12
                    )


@pytest.mark.parametrize("name", [*ROUGE, "bleu_pairs"])
@given(drawn=st.lists(words.filter(bool).map(" ".join), min_size=1, max_size=6))
def test_equal_texts_are_alike_whatever_they_hold(name, drawn):
    similarity = pairs(name, drawn + drawn)
    assert (
        np.diag(similarity, len(drawn)) == pytest.approx(np.ones(len(drawn)), abs=1e-12)
        and (similarity >= 0).all()
        and (similarity <= 1 + 1e-12).all()
    )


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=9), min_size=1, max_size=4))
def test_the_longest_common_subsequence_is_that_of_the_textbook(drawn):
    def naive(first, second):
        table = np.zeros((len(first) + 1, len(second) + 1), int)
        for i, x in enumerate(first):
            for j, y in enumerate(second):
                table[i + 1, j + 1] = table[i, j] + 1 if x == y else max(table[i, j + 1], table[i + 1, j])
        return table[-1, -1]

    assert lcs_lengths([drawn])[0].tolist() == [[naive(first, second) for second in drawn] for first in drawn]


def test_a_longest_common_subsequence_of_more_words_than_a_machine_word_has_bits():
    many = [str(i % 97) for i in range(400)]
    assert lcs_lengths([[many, many[::2], ["x", *many]]])[0][0].tolist() == [400, 200, 400]


@pytest.mark.parametrize("kind", SCRIPTS)
def test_the_tokenizer_unicode_reads_every_script(kind):
    first, second, third = SCRIPTS[kind]
    with use_tokenizer("unicode"):
        unlike, alike = table_of([first, second, third]), table_of([first] * 3)
        metrics, same = graded(first, second), graded(first, first)
    names = [name for name in METHODS if name != "lex_sim_bleu_lmp"]
    assert unlike["value"].notna().all() and np.allclose(alike["value"][names], certain()[names])
    assert (unlike.loc[["lex_sim", "lex_sim_rouge_1"], "value"] > -0.7).all()
    assert metrics["value"].notna().all() and same.loc[["rouge_1", "rouge_l"], "value"].tolist() == [1, 1]
    assert "".join(unicode_words(first)).strip() and not unicode_words("。! ॥ 😀")


@given(st.text(st.characters(max_codepoint=127)))
def test_english_words_are_those_of_rouge_apart_from_underscores(text):
    for stem in (True, False):
        assert unicode_tokenizer(stem)(text) == rouge_tokenizer(stem)(text)


@given(st.text(max_size=30))
def test_a_word_keeps_its_letters_whatever_their_form(text):
    words = unicode_words(text)
    assert words == unicode_words(unicodedata.normalize("NFD", text))
    assert all(any(unicodedata.category(c)[0] in "LN" for c in word) for word in words)
    assert not any(c.isspace() for word in words for c in word)
