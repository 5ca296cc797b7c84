"""BSDetector and P(True) in the light of drawn texts: the definitions, and replies that choose nothing."""

import numpy as np
import pytest

from uetrust.core.checks import Undefined
from uetrust.statistics.prompted import P_TRUE_QUESTIONS, REFLECTION_QUESTIONS
from uetrust.ue.replies.reflection import (
    bs_detector,
    bs_detector_observed,
    p_true_empirical,
    p_true_sampling,
    reflected_certainty,
)


def texts_and_nli(seed, k=4):
    rng = np.random.default_rng(seed)
    drawn = ["same" if same else f"other {i}" for i, same in enumerate(rng.random(k) < 0.5)]
    return "same", drawn, rng.dirichlet(np.ones(3), (1 + k, 1 + k))


@pytest.mark.parametrize("seed", range(5))
def test_bs_detector_has_the_weights_of_the_paper_and_of_uqlm(seed):
    text, drawn, nli = texts_and_nli(seed)
    no_contradiction = 1 - (nli[0, 1:, 0] + nli[1:, 0, 0]).mean() / 2
    same = np.mean([other == text for other in drawn])
    observed = 0.8 * no_contradiction + 0.2 * same
    assert bs_detector_observed(text, drawn, nli) == pytest.approx(1 - observed)
    for replies, said in (("answer: A\nanswer: B", 0.5), ("(C)", 0.5), ("answer: (A)\nA", 1.0)):
        value = bs_detector(text, drawn, nli, replies)
        assert value == pytest.approx(1 - (0.7 * observed + 0.3 * said))
        assert value == pytest.approx(1 - (0.56 * no_contradiction + 0.14 * same + 0.3 * said)), "uqlm"


@pytest.mark.parametrize(
    "reply, certainty",
    [
        ("explanation: it says so, answer: A", 1),
        ("explanation: answer: A would be rash, answer: [B]", 0),
        ("The answer is C.", 0.5),
        ("(A) Correct", 1),
        ("B", 0),
        ("**Answer:** (C)", 0.5),
        ("Answer: (B). The proposed answer is a distortion of the source.", 0),
        ("answer: a", 1),
    ],
)
def test_the_letter_that_a_reply_chooses(reply, certainty):
    assert reflected_certainty(reply) == certainty


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "Answer: apples",
        "The proposed answer is a faithful summary.",
        "A bulletin about rain.",
        "Correct.",
    ],
)
def test_a_reply_without_a_letter_chooses_nothing(reply):
    with pytest.raises(Undefined, match="none of A, B and C"):
        reflected_certainty(reply)


def test_one_reply_without_a_letter_leaves_no_score():
    with pytest.raises(Undefined, match="none of A, B and C"):
        bs_detector(*texts_and_nli(0), "answer: A\nwho knows")
    with pytest.raises(Undefined, match="at least 1 reply"):
        bs_detector(*texts_and_nli(0), "")


def test_shares_of_true_and_its_probability():
    assert p_true_empirical("True\nTrue.\nfalse\n(A) True") == 0.25
    assert p_true_empirical("True\nTrue\nTrue\n") == 0.25  # The last reply said nothing
    assert p_true_sampling(-2.0) == 2.0
    with pytest.raises(Undefined, match="at least 1 reply"):
        p_true_empirical("")


def test_the_questions_have_the_places_that_are_filled_in():
    assert len(REFLECTION_QUESTIONS["chen2023"]) == 2
    for question in REFLECTION_QUESTIONS["chen2023"]:
        assert question.count("{source}") == question.count("{summary}") == 1
    assert all(place in P_TRUE_QUESTIONS["brainstorm"] for place in ("{prompt}", "{samples}", "{summary}"))
