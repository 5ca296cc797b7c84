"""The overlap metrics of TRUE and the answer comparisons of question-answering metrics, against recorded numbers."""

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
    squad_em=sg.squad_em,
    edit_distance_norm=sg.edit_distance,
    q2_f1=sg.q2_f1,
    questeval_f1=sg.squad_f1,
)


@pytest.mark.parametrize("key", TRUE)
def test_the_metrics_of_true(oracle, key):
    for p in oracle("metrics/lexical.json")["pairs"]:
        if "true_style" in p:
            assert TRUE[key](p["hypothesis"], p["reference"]) == pytest.approx(
                p["true_style"][key], rel=1e-9, abs=1e-15
            ), p["id"]


def test_the_published_row(oracle):
    r = oracle("metrics/lexical.json")["true_benchmark_row"]
    for key, name in (
        ("bleu_1", "BLEU_1"),
        ("bleu_4", "BLEU_4"),
        ("rouge_l_beta1_2", "ROUGE_L"),
        ("f1_overlap", "F1_overlap"),
    ):
        assert TRUE[key](r["generated_text"], r["grounding"]) == pytest.approx(
            r["published"][name], abs=1e-15
        )


@pytest.mark.parametrize("key", ANSWERS)
def test_answer_comparisons(oracle, key):
    for p in oracle("metrics/lexical.json")["pairs"]:
        if "qa_strings" in p:
            assert ANSWERS[key](p["hypothesis"], p["reference"]) == pytest.approx(p["qa_strings"][key]), p[
                "id"
            ]


def test_feqa_compares_given_tokens(oracle):
    from nltk.tokenize import NLTKWordTokenizer

    words = NLTKWordTokenizer().tokenize
    for p in oracle("metrics/lexical.json")["pairs"]:
        if (
            "tokens" in p
            and words(p["hypothesis"]) == p["tokens"]["word_tokenize_hyp"]
            and ". " not in p["reference"].strip()
        ):
            assert sg.feqa_f1(words(p["hypothesis"]), words(p["reference"])) == pytest.approx(
                p["qa_strings"]["feqa_f1"]
            ), p["id"]


def test_normalised_texts(oracle):
    for p in oracle("metrics/lexical.json")["pairs"]:
        if "tokens" in p:
            assert (sg.normalised(p["hypothesis"]), sg.words(p["hypothesis"])) == (
                p["tokens"]["squad_norm_hyp"],
                p["tokens"]["q2_clean_hyp"].split(),
            ), p["id"]  # Q2 keeps line breaks until it splits


def test_bleu_of_alignscore_is_that_of_nltk(oracle):
    for p in oracle("metrics/lexical.json")["pairs"]:
        if "nltk_bleu" in p and p["hypothesis"].strip() and p["reference"].strip():
            assert sg.bleu_alignscore([p["hypothesis"]], [p["reference"]]) == pytest.approx(
                p["nltk_bleu"]["split_nosmooth"], abs=1e-12
            ), p["id"]
    with pytest.raises(Undefined, match="no sentence"):
        sg.bleu_alignscore(["a"], [])
    assert sg.bleu_alignscore([], ["a"]) == 0


@given(st.text(), st.text())
def test_what_must_hold_of_any_two_texts(a, b):
    for f in (sg.squad_f1, sg.q2_f1):
        assert 0 <= f(a, b) == f(b, a) <= 1
    assert (
        sg.squad_f1(a, a) == 1
        and sg.edit_distance(a, a) == 0
        and sg.edit_distance(a, b) == sg.edit_distance(b, a)
    )
    for f in TRUE.values():
        assert 0 <= f(a, b) <= 1 + 1e-9


def test_word_salad_does_not_beat_the_sentence():
    s = "rain fell on the old town hall roof"
    for f in (sg.bleu_4_true, sg.rouge_l_true):
        assert f(s, s) > f("roof hall town old the on fell rain", s)


def test_every_entry_is_complete():
    for n, e in reg.items():
        if e.fn.__module__ == sg.__name__:
            assert all((e.formula, e.trap, e.unit, e.cite, e.dim)), n
