"""The overlap metrics of TRUE and the answer comparisons of question-answering metrics, against recorded
numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.nlg import strings as sg

TRUE = dict(
    bleu_1=sg.bleu_1_true, bleu_4=sg.bleu_4_true, rouge_l_beta1_2=sg.rouge_l_true, f1_overlap=sg.token_f1_true
)
ANSWERS = dict(
    squad_f1=sg.squad_f1,
    squad_em=sg.squad_exact_match,
    edit_distance_norm=sg._answer_edit_distance,
    q2_f1=sg.q2_f1,
    questeval_f1=sg.squad_f1,
)


@pytest.mark.parametrize("key", TRUE)
def test_the_metrics_of_true(oracle, key):
    for pair in oracle("metrics/lexical.json")["pairs"]:
        words = [sg.normalised_words(pair[side]) for side in ("hypothesis", "reference")]
        if not any(words):  # 0 there
            with pytest.raises(Undefined, match="no text has a word"):
                TRUE[key](pair["hypothesis"], pair["reference"])
        elif "true_style" in pair:
            assert TRUE[key](pair["hypothesis"], pair["reference"]) == pytest.approx(
                pair["true_style"][key], rel=1e-9, abs=1e-15
            ), pair["id"]


def test_the_published_row(oracle):
    row = oracle("metrics/lexical.json")["true_benchmark_row"]
    for key, name in (
        ("bleu_1", "BLEU_1"),
        ("bleu_4", "BLEU_4"),
        ("rouge_l_beta1_2", "ROUGE_L"),
        ("f1_overlap", "F1_overlap"),
    ):
        assert TRUE[key](row["generated_text"], row["grounding"]) == pytest.approx(
            row["published"][name], abs=1e-15
        )


@pytest.mark.parametrize("key", ANSWERS)
def test_answer_comparisons(oracle, key):
    for pair in oracle("metrics/lexical.json")["pairs"]:
        if "qa_strings" in pair:
            assert ANSWERS[key](pair["hypothesis"], pair["reference"]) == pytest.approx(
                pair["qa_strings"][key]
            ), pair["id"]


def test_feqa_compares_given_tokens(oracle):
    from nltk.tokenize import NLTKWordTokenizer

    words = NLTKWordTokenizer().tokenize
    for pair in oracle("metrics/lexical.json")["pairs"]:
        if (
            "tokens" in pair
            and words(pair["hypothesis"]) == pair["tokens"]["word_tokenize_hyp"]
            and ". " not in pair["reference"].strip()
        ):
            assert sg.feqa_f1(words(pair["hypothesis"]), words(pair["reference"])) == pytest.approx(
                pair["qa_strings"]["feqa_f1"]
            ), pair["id"]


def test_normalised_texts(oracle):
    for pair in oracle("metrics/lexical.json")["pairs"]:
        if "tokens" in pair:
            assert (sg._normalised_answer(pair["hypothesis"]), sg.normalised_words(pair["hypothesis"])) == (
                pair["tokens"]["squad_norm_hyp"],
                pair["tokens"]["q2_clean_hyp"].split(),
            ), pair["id"]  # Q2 keeps line breaks until it splits


def test_bleu_of_alignscore_is_that_of_nltk(oracle):
    for pair in oracle("metrics/lexical.json")["pairs"]:
        if "nltk_bleu" in pair and pair["hypothesis"].strip() and pair["reference"].strip():
            assert sg.bleu_alignscore([pair["hypothesis"]], [pair["reference"]]) == pytest.approx(
                pair["nltk_bleu"]["split_nosmooth"], abs=1e-12
            ), pair["id"]
    with pytest.raises(Undefined, match="no sentence"):
        sg.bleu_alignscore(["a"], [])
    assert sg.bleu_alignscore([], ["a"]) == 0


@given(st.text(), st.text())
def test_what_must_hold_of_any_two_texts(first, second):
    for metric in (sg.squad_f1, sg.q2_f1):
        assert 0 <= metric(first, second) == metric(second, first) <= 1
    assert (
        sg.squad_f1(first, first) == 1
        and sg._answer_edit_distance(first, first) == 0
        and sg._answer_edit_distance(first, second) == sg._answer_edit_distance(second, first)
    )
    for metric in TRUE.values():
        if not any(map(sg.normalised_words, (first, second))):
            with pytest.raises(Undefined):
                metric(first, second)
            continue
        assert 0 <= metric(first, second) <= 1 + 1e-9


def test_word_salad_does_not_beat_the_sentence():
    sentence = "rain fell on the old town hall roof"
    for metric in (sg.bleu_4_true, sg.rouge_l_true):
        assert metric(sentence, sentence) > metric("roof hall town old the on fell rain", sentence)


def test_every_entry_is_complete():
    for name, entry in reg.items():
        if entry.fn.__module__ == sg.__name__:
            assert all((entry.formula, entry.pitfall, entry.unit, entry.cite, entry.dim)), name
