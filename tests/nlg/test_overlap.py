"""Overlap metrics are those of the packages that papers name, with the settings they name."""

from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from nltk.translate.meteor_score import meteor_score
from rouge_score.rouge_scorer import RougeScorer

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.data.wordnet import synonyms
from uetrust.nlg.overlap import bleu, meteor, rouge, rouge_1, rouge_2, rouge_2_precision, rouge_l


@pytest.fixture(scope="module")
def pairs(oracle):
    return oracle("metrics/lexical.json")["pairs"]


def test_rouge_is_the_recorded_one_with_and_without_stems(pairs):
    seen = 0
    for pair in pairs:
        for key, stem in (("rouge_nostem", False), ("rouge_stem", True)):
            for kind in ("rouge1", "rouge2", "rougeL"):
                want = pair[key][kind]
                try:
                    got = rouge(kind, pair["hypothesis"], pair["reference"], stem)
                except Undefined:  # no word in the reference: the package says 0
                    assert want["recall"] == want["fmeasure"] == 0
                    continue
                assert (got.precision, got.recall, got.fmeasure) == pytest.approx(
                    (want["precision"], want["recall"], want["fmeasure"]), abs=1e-12
                )
                seen += 1
    assert seen > 150


def test_rouge_l_is_defined_exactly_where_the_benchmark_has_a_value(pairs):
    for pair in pairs:
        want = pair["he_rouge"]["rougeL"]
        if want == "NaN":
            with pytest.raises(Undefined):
                rouge_l(pair["hypothesis"], pair["reference"])
        else:
            assert rouge_l(pair["hypothesis"], pair["reference"]) == pytest.approx(want, abs=1e-12)


def test_bleu_and_meteor_are_the_recorded_ones(pairs):
    nothing = [pair for pair in pairs if not (pair["hypothesis"] + pair["reference"]).strip()]
    assert nothing, "two empty texts are among them"
    for pair in nothing:  # 0 there
        for metric in (bleu, meteor):
            with pytest.raises(Undefined, match="no text has a word"):
                metric(pair["hypothesis"], pair["reference"])
    for pair in [pair for pair in pairs if pair not in nothing]:
        assert bleu(pair["hypothesis"], pair["reference"]) == pytest.approx(
            pair["sacrebleu"]["default_sentence"]["score"], abs=1e-9
        ), pair["id"]
        assert meteor(pair["hypothesis"], pair["reference"]) == pytest.approx(
            pair["meteor"]["split"], abs=1e-12
        ), pair["id"]


def test_more_references_never_hurt_rouge_and_one_in_a_list_is_one():
    hypothesis, references = (
        "the council met on monday",
        ["the council met", "a council met on monday", "nobody came"],
    )
    for metric in (rouge_1, rouge_2, rouge_l):
        assert metric(hypothesis, references) == max(
            metric(hypothesis, reference) for reference in references
        )
        assert metric(hypothesis, references[:1]) == metric(hypothesis, references[0])


words = st.lists(st.sampled_from("the cat sat on a mat".split()), min_size=1, max_size=8).map(" ".join)


@given(words, words)
def test_f_is_symmetric_and_identity_is_perfect(first, second):
    for metric in (rouge_1, rouge_l):
        assert metric(first, second) == pytest.approx(metric(second, first), abs=1e-12)
    assert rouge_1(first, first) == rouge_l(first, first) == 1
    assert 0 <= meteor(first, second) <= 1 and -1e-9 <= bleu(first, second) <= 100 + 1e-9


@given(st.lists(st.sampled_from("the cats sat on a mat ?".split()), max_size=12).map(" ".join), words)
def test_rouge_l_is_that_of_the_package(hypothesis, reference):
    assert (
        rouge("rougeL", hypothesis, reference)
        == RougeScorer(["rougeL"], use_stemmer=True).score(reference, hypothesis)["rougeL"]
    )


alike = st.lists(st.sampled_from("car automobile railcar big large adult run ran".split()), max_size=8)


def names(word):
    return [SimpleNamespace(name=lambda name=name: name) for name in synonyms(word)]


@given(alike, alike)
def test_meteor_finds_the_synonyms_that_the_package_finds(hypothesis, reference):
    assume(hypothesis or reference)
    meanings = SimpleNamespace(synsets=lambda word: [SimpleNamespace(lemmas=lambda: names(word))])
    assert meteor(" ".join(hypothesis), " ".join(reference)) == meteor_score(
        [reference], hypothesis, wordnet=meanings
    )


@given(words)
def test_precision_against_a_source_that_holds_the_summary_is_one(summary):
    assert rouge_2_precision(summary, f"before {summary} after") == (len(summary.split()) > 1)


def test_every_metric_is_registered_with_its_scale():
    assert {reg[name].unit for name in ("rouge_1", "rouge_2", "rouge_l", "rouge_2_precision", "meteor")} == {
        "[0,1]"
    } and reg["bleu"].unit == "[0,100]"
    assert reg["meteor"].needs == ("hypothesis", "reference")
