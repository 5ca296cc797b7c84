"""Agreement of drawn texts with the answer: the numbers of uqlm, and what has no answer."""

import json
from pathlib import Path

import numpy as np
import pytest

from uetrust.core.checks import Undefined
from uetrust.core.run import ScoreRun, compute_score
from uetrust.core.settings import root
from uetrust.models.load import load_model
from uetrust.statistics.entry import STATISTICS, compute_entry
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts.comparisons import sample_bertscores
from uetrust.ue.replies.agreement import (
    bertscore_consistency,
    consistency_and_confidence,
    cosine_consistency,
    exact_match_consistency,
    monte_carlo_probability,
)

CASES = json.loads((Path(__file__).parents[2] / "fixtures" / "replies.json").read_text())["cases"]
reg = load_scores()


def scores_of(case):
    "Scores of a case from what a reply and an encoder give"
    run = ScoreRun(
        ["a"],
        reg,
        greedy_text=[case["texts"][0]],
        sample_texts=[case["texts"][1]],
        greedy_logp=[np.array(case["logp"])],
        sample_logp=[[np.array(logp) for logp in case["drawn"]]],
        vectors=[np.array(case["vectors"])],
    )
    names = "exact_match_consistency cosine_consistency consistency_and_confidence monte_carlo_probability"
    return {name: compute_score(run, name)["value"][0] for name in names.split()}


@pytest.mark.parametrize("case", CASES)
def test_each_is_one_minus_the_confidence_of_uqlm(case):
    theirs = "exact_match cosine_sim consistency_and_confidence monte_carlo_probability".split()
    for (name, value), other in zip(scores_of(case).items(), theirs):
        assert 1 - value == pytest.approx(case[other], abs=1e-12), name


def test_what_is_not_drawn_or_has_no_token_has_no_score():
    for score, given in (
        (exact_match_consistency, ("a", [])),
        (cosine_consistency, (np.zeros(0),)),
        (bertscore_consistency, (np.zeros(0),)),
        (monte_carlo_probability, (np.log([0.5]), np.zeros(0))),
        (monte_carlo_probability, (np.log([0.5]), np.array([np.nan]))),
        (consistency_and_confidence, (np.zeros(0), np.ones(1))),
    ):
        with pytest.raises(Undefined, match="drawn text|at least 1"):
            score(*given)


def test_bertscore_of_a_drawn_text_is_that_of_the_metric_and_an_empty_one_has_none():
    model = load_model(root() / "data" / "models" / "tiny-encoder")
    given = dict(hypothesis=["Rain fell.", ""], samples=[["Rain fell.", "A hall.", ""], ["Rain"]])
    found = compute_entry(STATISTICS["sample_bertscores"], model, given, ["sample_bertscore"])[0]
    first, second = found["sample_bertscore"]
    pair = dict(hypothesis=["Rain fell."], reference=["A hall."])
    cosines = compute_entry(STATISTICS["bertscore"], model, pair, ["cosines_hypothesis_reference"])[0]
    metric = reg["bertscore_f1"].fn(cosines["cosines_hypothesis_reference"][0])
    assert first == pytest.approx([1, metric, 0], abs=1e-6) and second.tolist() == [0]
    assert 0 < metric < 1 and bertscore_consistency(first) == pytest.approx(1 - (1 + metric) / 3)
    assert (
        sample_bertscores(model, dict(hypothesis=["a"], samples=[[]]), [])[0]["sample_bertscore"][0].size == 0
    )
