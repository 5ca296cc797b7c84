"""Texts of every script: what is not compared is undefined with a reason, never certain and never perfect."""

import unicodedata
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.scripts import FEW_WORDS, NO_WORDS, SCRIPTS, TRICKY
from uetrust.core.run import ScoreRun, compute_score, required_inputs
from uetrust.core.segmentation import _tokenizer, split_sentences, whole_texts_note
from uetrust.scoring.metrics import compute_metrics
from uetrust.scoring.metrics import required_inputs as metric_inputs
from uetrust.statistics.scores import load_scores
from uetrust.ue.similarity import rouge_tokenizer, unicode_tokenizer, unicode_words, use_tokenizer

reg = load_scores()
# Every method that compares samples by their words alone, and every metric of texts and their sentences alone
METHODS = [name for name in reg.of("ue") if required_inputs(name) == ["sample_texts"]]
TEXTS = {"hypothesis", "source", "reference", "hypothesis_sentences", "source_sentences"}
METRICS = [
    name
    for name in reg.of("nlg")
    if "hypothesis" in str(metric_inputs(name)) and set(metric_inputs(name)) <= TEXTS
]
KINDS = SCRIPTS | FEW_WORDS | NO_WORDS | TRICKY
ALIKE = "The council opened a new bridge over the river."


def table_of(samples):
    "Value and note of every method for one source"
    run = ScoreRun(["x"], reg, sample_texts=[samples])
    return pd.concat([compute_score(run, name) for name in METHODS]).set_index("name")


@cache
def certain():
    return table_of([ALIKE] * 3)["value"]


def graded(hypothesis, other):
    "Value and note of every metric for one text"
    texts = pd.DataFrame(dict(id=["x"], hypothesis=[hypothesis], source=[other], reference=[other]))
    return compute_metrics(texts, {}, METRICS, progress=False).set_index("name")


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


@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Cs"])))
def test_sentences_of_latin_letters_are_those_of_punkt(text):
    assert split_sentences(text) == _tokenizer().tokenize(text)


ENDS = dict(
    chinese="今天下雨。警方逮捕了他们！真的吗？",
    japanese="雨が降る。行こう！どこへ？",
    hindi="पुल खुला। पुलिस आई। बारिश हुई॥",
    urdu="پل کھلا۔ پولیس آئی۔ بارش ہوئی؟",
    arabic="هل فتح الجسر؟ هل جاءت الشرطة؟ نعم",
    armenian="Կամուրջ բացվեց։ Ոստիկան եկավ։ Անձրև։",
    amharic="ድልድይ ተከፈተ። ፖሊስ መጣ። ዝናብ ነው።",
    burmese="တံတားဖွင့်သည်။ ရဲလာသည်။ မိုးရွာသည်။",
    russian="Мост открыт. Полиция приехала. Идёт дождь.",
)


@pytest.mark.parametrize("script", ENDS)
def test_three_sentences_of_a_script_are_three(script):
    found = split_sentences(ENDS[script])
    assert len(found) == 3 and "".join(found).replace(" ", "") == ENDS[script].replace(" ", "")


@given(st.text("雨天。！？「」『』“” a.x\n؟।", max_size=40))
def test_no_character_of_a_text_is_lost_between_sentences(text):
    found = split_sentences(text)
    assert "".join("".join(found).split()) == "".join(text.split()) and all(map(str.strip, found))


def test_long_texts_that_stay_whole_are_told():
    thai = " ".join(SCRIPTS["thai"]) * 6
    assert whole_texts_note([thai] * 3 + ["สั้น"]).startswith("one sentence in 4 of 4 texts, 3 of them long")
    assert whole_texts_note([thai, ENDS["hindi"]]) == whole_texts_note(["สั้น"]) == whole_texts_note([]) == ""
