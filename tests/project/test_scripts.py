"""Texts of every script: what is not compared is undefined with a reason, never certain and never perfect."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.scripts import FEW_WORDS, NO_WORDS, SCRIPTS, TRICKY
from tests.helpers.scripts import ALIKE, METHODS, METRICS, certain, graded, table_of
from uetrust.core.segmentation import _tokenizer, split_sentences

KINDS = SCRIPTS | FEW_WORDS | NO_WORDS | TRICKY


@cache
def perfect():
    return graded(ALIKE, ALIKE)["value"]


def missing_say_why(found):
    return (found["value"].isna() == (found["note"] != "")).all()


def test_the_scores_that_compare_words_are_all_here():
    assert len(METHODS) >= 9 and {"lex_sim", "bleu_var", "eigv_jaccard", "lex_sim_bleu_lmp"} <= set(METHODS)
    assert len(METRICS) >= 13 and {"rouge_l", "bleu", "chrf", "ter", "bleu_alignscore"} <= set(METRICS)
    assert certain().notna().all() and perfect().notna().all()


@pytest.mark.parametrize("kind", KINDS)
def test_unlike_samples_are_never_certain_and_what_is_missing_says_why(kind):
    found = table_of(list(KINDS[kind]))
    assert missing_say_why(found)
    assert not np.isclose(found["value"], certain()[found.index]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_an_unlike_text_is_never_perfect_and_what_is_missing_says_why(kind):
    first, second = KINDS[kind][::2]
    found = graded(first, second)
    assert missing_say_why(found)
    assert not np.isclose(found["value"], perfect()[found.index]).any()


@pytest.mark.parametrize("kind", KINDS)
def test_equal_texts_are_certain_or_undefined(kind):
    found = table_of([KINDS[kind][0]] * 3)
    assert missing_say_why(found)
    if KINDS[kind][0].split():  # LM-Polygraph gives 0 for two empty texts
        assert np.isclose(found["value"], certain()[found.index])[found["value"].notna()].all()


def test_methods_of_empty_samples_are_undefined():
    found = table_of(["", "", ""]).drop(index="lex_sim_bleu_lmp")
    assert found["value"].isna().all() and found["note"].str.startswith("3 of its samples have no word").all()


@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Cs"])))
def test_sentences_of_latin_letters_are_those_of_punkt(text):
    assert split_sentences(text) == _tokenizer().tokenize(text)
