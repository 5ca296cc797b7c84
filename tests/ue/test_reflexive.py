"""Reflexive methods: P(True), and a parser of stated confidences that refuses rather than guesses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.run import ScoreRun, compute_score
from uetrust.ue import reflexive as rf
from uetrust.ue.reflexive import stated_confidence


# Probabilities of an answer
def test_p_true_is_that_of_lm_polygraph(oracle):
    (recorded,) = oracle("uncertainty.json")["prompt"]
    want = np.array(recorded["outputs"]["PTrue"], object).astype(float)
    got = [rf.p_true(float(x)) for x in recorded["inputs"]["p_true"]]
    assert got == pytest.approx(want, rel=1e-12) and got[-1] == np.inf
    assert [np.copysign(1, x) for x in got] == [1] * 4  # -0.0 there


def test_a_forced_first_token_gives_every_text_the_same_score(oracle):
    recorded = {
        case["name"]: float(case["outputs"]["log_p_true"][0])
        for case in oracle("uncertainty.json")["tiny_bart_released_calculators"]
    }
    assert rf.p_true_he2024(recorded["forced_bos_eos"]) == np.inf
    assert (
        rf.p_true_he2024(recorded["unforced"])
        == rf.p_true(recorded["unforced"])
        == pytest.approx(1.9434113502502441)
    )


@given(st.floats(-2000, 0), st.floats(-2000, 0), st.floats(0, 500))
def test_the_normalised_form_compares_the_two_words_only(true, false, shift):
    assert rf.p_true_normalized(true, false) == pytest.approx(
        1 - rf.p_true_normalized(false, true), abs=1e-12
    )
    assert rf.p_true_normalized(true - shift, false - shift) == pytest.approx(
        rf.p_true_normalized(true, false), abs=1e-9
    )
    assert rf.p_true_normalized(true, false - shift) <= rf.p_true_normalized(true, false)


def test_impossible_answers():
    assert rf.p_true_normalized(-np.inf, -1) == 1 and rf.p_true_normalized(-1, -np.inf) == 0
    with pytest.raises(Undefined, match="neither True nor False"):
        rf.p_true_normalized(-np.inf, -np.inf)


def test_scores_are_told_from_what_they_read():
    "A statistic with the name of a score would be mistaken for the score by the table of scores."
    mine = {n: e.needs for n, e in reg.items() if e.fn.__module__ == rf.__name__}
    assert mine == dict(
        p_true=("true_logp",),
        p_true_he2024=("true_processed_logp",),
        p_true_normalized=("true_logp", "false_logp"),
        claim_p_true=("claim_true_logp",),
        verbalized_1s=("verbal_1s",),
        verbalized_2s=("verbal_2s",),
    )
    assert not {k for needs in mine.values() for k in needs} & set(mine)
    run = ScoreRun(["a", "b"], true_logp=[-1.0, -np.inf], false_logp=[-1.0, -np.inf])
    assert run.lacks("p_true_he2024") == ["true_processed_logp"]
    table = compute_score(run, "p_true_normalized")
    assert table["value"][0] == 0.5 and np.isnan(table["value"][1]) and "neither" in table["note"][1]


# Replies that state one value
NUMBERS = {
    "0.8": 0.8,
    "0.8.": 0.8,
    ".8": 0.8,
    "1": 1,
    "0": 0,
    "1.0": 1,
    "0,85": 0.85,
    "85%": 0.85,
    "85 %": 0.85,
    "85 percent": 0.85,
    "85 per cent.": 0.85,
    "8/10": 0.8,
    "8 / 10": 0.8,
    "8 out of 10": 0.8,
    "9 in 10": 0.9,
    "1 in 3": 1 / 3,
    "4.5/5": 0.9,
    "4.5 out of 5": 0.9,
    "80/100": 0.8,
    "0.8/1.0": 0.8,
    "50/50": 0.5,
    "I would give it an 8/10.": 0.8,
    "about 0.8": 0.8,
    "I am 90% confident.": 0.9,
    "I am 100% sure, for 2 reasons": 1,
    "0.85 (very confident)": 0.85,
    "0.85 (85%)": 0.85,
    "On a scale of 1 to 10, 8": 0.8,
    "on a scale from 0 to 100: 85": 0.85,
    "On a scale of 0 to 1, 0.85": 0.85,
    "99.5%": 0.995,
    "0.005": 0.005,
    "<0.8>": 0.8,
    "≈ 0.8": 0.8,
}
LABELLED = {
    "Confidence: 0.8": 0.8,
    "**Confidence:** 0.8": 0.8,
    "Confidence:\n0.7": 0.7,
    "confidence = 0.65": 0.65,
    "Confidence - 0.65": 0.65,
    "Confidence score: 85/100": 0.85,
    "My confidence level is 85%.": 0.85,
    "Probability (0.0 to 1.0): 0.85": 0.85,
    "Confidence (0-100): 85": 0.85,
    "Confidence (0-100%): 85%": 0.85,
    "Guess: Paris\nP1: 0.9": 0.9,
    "Probability: 0.85\nExplanation: 2 claims are unsupported": 0.85,
    "The probability that my guess is correct is 0.9": 0.9,
    "I would put the probability at 0.85, as 3 of 4 claims hold": 0.85,
    "Confidence: 80% (0.8)": 0.8,
    "Confidence: 7 out of 10": 0.7,
    "Confidence: 0.8\nOverall probability: 80%": 0.8,
    "Summary: 3 of 40 houses burned down, 5% more than in 2019.\nProbability: 0.85": 0.85,
    "Summary: from 0 to 10 degrees.\nProbability: 0.9": 0.9,
    "Guess: 17 dead\nConfidence: Highly Likely": 0.9,
    "Confidence: about even": 0.5,
    "Confidence: It is almost certain that the summary is correct.": 0.95,
    "Likelihood: likely": 0.7,
    "The probability of rain is 30%.\nConfidence: 0.9": 0.9,
    "Certainty: 1.": 1,
}
WORDS = {
    "Highly likely": 0.9,
    "It is highly likely.": 0.9,
    '"Almost Certain"': 0.95,
    "Likely.": 0.7,
    "unlikely": 0.2,
    "Very good chance that the summary is correct": 0.8,
    "A very good chance": 0.8,
    "Chances are Slight": 0.1,
    "The summary is likely correct.": 0.7,
    "It's improbable": 0.1,
    "We doubt it is": None,
    "Probably not": 0.25,
    "Probably": 0.7,
    "Highly likely (90%)": 0.9,
}


@pytest.mark.parametrize(
    "reply,want", [*NUMBERS.items(), *LABELLED.items(), *((k, v) for k, v in WORDS.items() if v)]
)
def test_a_reply_that_states_one_value(reply, want):
    assert stated_confidence(reply) == pytest.approx(want, abs=1e-12)
    assert stated_confidence(f" {reply.upper()}\n\n") == pytest.approx(want, abs=1e-12)


@pytest.mark.parametrize("reply", LABELLED)
def test_a_label_is_enough_for_a_reply_that_holds_the_summary(reply):
    assert (
        stated_confidence(reply, label=True)
        == stated_confidence(reply)
        == pytest.approx(1 - rf.verbalized_1s(reply))
    )


@pytest.mark.parametrize("reply", [*NUMBERS, *WORDS])
def test_without_a_label_a_number_may_belong_to_the_summary(reply):
    with pytest.raises(Undefined, match="behind a label"):
        rf.verbalized_1s(reply)


# Replies that state none
@pytest.mark.parametrize(
    "reply",
    [
        "0.7-0.9",
        "0.7 – 0.9",
        "0.7 to 0.9",
        "between 0.7 and 0.9",
        "80-90%",
        "80%-90%",
        "between 80 and 90 percent",
        "Confidence: 0.7-0.9",
        "Confidence: 0.7 or 0.9",
        "Probability: 70 to 90%",
        "G1: 3 dead\nP1: 0.6\nG2: 4 dead\nP2: 0.2",
        "Likely\nUnlikely",
        "First 0.3, then 0.8",
        "Confidence: 0.8\nProbability: 0.6",
        "0.85, as 3 of 4 claims hold",
        "90% sure, or 0.7",
    ],
)
def test_two_values_are_none(reply):
    with pytest.raises(Undefined, match="two values and more") as e:
        stated_confidence(reply)
    assert repr(reply[:40]) in str(e.value)


@pytest.mark.parametrize(
    "reply",
    [
        "-0.5",
        "Probability: -0.2",
        "1.2",
        "120%",
        "12/10",
        "8",
        "85",
        "Confidence: 85",
        "24/7",
        "5/0",
        "There are 3 reasons",
        "On a scale of 1 to 10, 12",
        "It was 2019",
    ],
)
def test_a_value_off_the_scale_is_none(reply):
    with pytest.raises(Undefined, match="off the scale from 0 to 1"):
        stated_confidence(reply)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "As an AI language model, I cannot provide a probability.",
        "I cannot assign a probability between 0 and 1.",
        "I can't say how likely it is",
        "I do not know.",
        "I am unable to rate the 2 documents.",
        "I cannot give a probability without seeing the 1 document.",
        "I don't know, there is 1 source only",
        "Confidence: high",
        "Confidence: n/a",
        "Not likely",
        "likely or unlikely",
        "We doubt it is",
        "Yes.",
        "True",
        "1st",
        "v1.2.3rc",
        "nan",
        "Summary: 12 people died in 2019.\nConfidence: I do not know",
        "It is hard to say whether this is probable or not",
        "likely-ish",
    ],
)
def test_a_reply_without_a_value_is_quoted(reply):
    with pytest.raises(Undefined, match="no confidence") as e:
        stated_confidence(reply)
    assert repr(reply[:40]) in str(e.value) and len(str(e.value)) < 100


def test_the_scale_that_was_asked_for():
    assert [
        stated_confidence(reply, scale=100) for reply in ("85", "Confidence: 85", "85%", "8/10", "100", "0.5")
    ] == [
        0.85,
        0.85,
        0.85,
        0.8,
        1,
        0.005,
    ]
    assert stated_confidence("On a scale of 1 to 10, 8", scale=100) == 0.8  # what the reply names wins
    with pytest.raises(Undefined, match="120 is off the scale from 0 to 100"):
        stated_confidence("120", scale=100)
    assert rf.verbalized_1s("Confidence: 85", scale=100) == pytest.approx(0.15) and rf.verbalized_2s(
        "85", scale=100
    ) == pytest.approx(0.15)


@given(st.integers(0, 100))
def test_every_percentage_is_read_in_every_form(k):
    for reply in (
        f"{k}%",
        f"{k / 100:.2f}",
        f"{k}/100",
        f"{k} out of 100",
        f"Confidence: {k} percent",
        f"Probability: {k / 100:.2f}",
        f"I am {k}% sure",
    ):
        assert rf.verbalized_2s(reply) == pytest.approx(1 - k / 100, abs=1e-12)


@given(st.text(max_size=60))
def test_any_reply_is_a_value_or_undefined(reply):
    try:
        assert 0 <= stated_confidence(reply) <= 1
    except Undefined as e:
        assert repr(reply[:40]) in str(e)


def test_phrases_are_ordered_as_people_understand_them():
    "Medians of the 123 answers of Fagen-Ulmschneider's survey, which Tian et al. use."
    phrases = rf.PROBABILITY_PHRASES
    order = [
        "almost no chance",
        "highly unlikely",
        "little chance",
        "unlikely",
        "probably not",
        "about even",
        "better than even",
        "likely",
        "very good chance",
        "highly likely",
        "almost certain",
    ]
    assert [phrases[phrase] for phrase in order] == sorted(phrases[phrase] for phrase in order) and len(
        phrases
    ) == 17
    assert all(stated_confidence(phrase.title()) == value for phrase, value in phrases.items())
