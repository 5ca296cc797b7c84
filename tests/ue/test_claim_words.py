"""Words of claims: a unigram model counted slowly, and two baselines."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.run import ScoreRun, compute_score
from uetrust.data.biographies import FUNCTION_WORDS
from uetrust.statistics.scores import load_scores

reg = load_scores()
words = st.lists(st.sampled_from("ab cd efg .".split()), min_size=1, max_size=6)


def run_of(claim, texts):
    return ScoreRun(["a claim"], reg, claim=[claim], claim_texts=[texts])


def score(name, claim, texts):
    found = compute_score(run_of(claim, texts), name)
    return found["value"][0], found["note"][0]


@given(words, st.lists(words, max_size=4))
def test_surprisals_are_those_of_counted_words(own, samples):
    "Every word of the claim is in its text, so no score is infinite."
    every = own + [word for sample in samples for word in sample]
    surprisals = [-math.log(every.count(word) / len(every)) for word in own]
    texts = [" ".join(text).upper() for text in (own, *samples)]
    mean, largest = (
        score(name, " ".join(own), texts) for name in ("selfcheck_unigram", "selfcheck_unigram_max")
    )
    assert mean == (pytest.approx(sum(surprisals) / len(own), abs=1e-12), "")
    assert largest == (pytest.approx(max(surprisals), abs=1e-12), "")


def test_a_word_of_no_text_is_infinite_and_a_claim_without_words_is_undefined():
    for name in ("selfcheck_unigram", "selfcheck_unigram_max"):
        assert score(name, "rain fell", ["rain"]) == (np.inf, "")
        assert score(name, "rain", []) == (np.inf, "")
        value, note = score(name, " ", ["rain"])
        assert np.isnan(value) and note == "the claim has no word"


def test_baselines_are_position_and_content_words():
    run = ScoreRun(
        "abc",
        reg,
        claim=["He was born in Rome.", "Rome is old", "the"],
        claim_about=["Rome", "", ""],
        claim_index=[1, 2, 3],
        claim_count=[3, 3, 3],
    )
    assert compute_score(run, "claim_position")["value"].tolist() == pytest.approx([1 / 3, 2 / 3, 1])
    assert {"he", "was", "in", "is", "the"} <= FUNCTION_WORDS
    assert compute_score(run, "claim_content_words")["value"].tolist() == [1, 2, 0]
    assert {reg[name].role for name in ("claim_position", "claim_content_words")} == {"baseline"}
