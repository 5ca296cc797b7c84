"""Metrics that ask questions: how many are asked, what is cut, what is compared."""

import numpy as np
import pytest

from tests.helpers.readings import save_roomy
from uetrust.core.settings import oracles
from uetrust.generation.decoding import text_seed
from uetrust.models.load import load_model
from uetrust.models.questions import argmax_answers
from uetrust.nlg.qa import AnsweredQuestion, Question
from uetrust.statistics.texts import STATISTICS, questions

LONG = " ".join(["w1"] * 700)


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    return save_roomy(tmp_path_factory.mktemp("nli"))


def test_q2_compares_whole_texts_of_512_tokens_where_no_question_was_asked(roomy):
    inputs = dict(
        hypothesis=["w2 w3", "w2"],
        source=[LONG, LONG],
        q2_answers=[[AnsweredQuestion("w4 w5", "w6", "")], []],
    )
    statistics, cut = STATISTICS["q2_nli"].compute(load_model(roomy), inputs, ["q2_nli"])
    assert [found.shape for found in statistics["q2_nli"]] == [(0, 3), (1, 3)]
    none, _ = STATISTICS["q2_nli"].compute(
        load_model(roomy), {name: values[:1] for name, values in inputs.items()}, ["q2_nli"]
    )
    assert none["q2_nli"][0].shape == (0, 3)
    pair = len(load_model(roomy).tokenizer(LONG, "w2").input_ids)
    assert cut["q2_nli"].tolist() == [0, pair - 512]


def test_qags_draws_with_a_seed_of_the_text_alone():
    for text in ("a", "b"):
        drawn, known = questions._text_rng(text), np.random.default_rng(text_seed(42, text, 0))
        assert drawn.integers(2**32, size=4).tolist() == known.integers(2**32, size=4).tolist()


@pytest.mark.parametrize("asked", [25, 20, 19, 9])
def test_qags_asks_at_most_twenty_questions(oracle, asked):
    oracle("metrics/triples.json")
    asked_questions = [Question(f"where is w{i} now?", -float(i), "w") for i in range(asked)]
    inputs = dict(hypothesis=["It rained."], source=["Rain fell."], qags_questions=[asked_questions])
    model = load_model(oracles() / "metrics" / "models" / "tiny_electra_qa")
    statistics, _ = STATISTICS["qags"].compute(model, inputs, ["qags_answers"])
    assert len(statistics["qags_answers"][0]) == min(2 * asked, 20), "drawn again where too few are good"


def test_tokens_that_did_not_fit_are_counted_on_both_sides(oracle):
    oracle("metrics/triples.json")
    model = load_model(oracles() / "metrics" / "models" / "tiny_electra_qa")
    text, asked = " ".join(["rain"] * 2000), f"where is {' '.join(['rain'] * 100)}?"
    inputs = dict(hypothesis=[text, "Rain."], source=[text, text])
    inputs["qags_questions"] = [[Question(asked, -1.0, "rain")]] * 2
    statistics, cut = STATISTICS["qags"].compute(model, inputs, ["qags_answers"])
    length = len(model.tokenizer(asked, add_special_tokens=False).input_ids)
    assert cut["qags_answers"].tolist() == [
        2 * (length - 64) * len(answers) for answers in statistics["qags_answers"]
    ]
    found = argmax_answers(model, [("where is rain now?", text)])
    inputs["q2_questions"] = [[Question("where is rain now?", -1.0, found[0][0])], []]
    _, cut = STATISTICS["q2"].compute(model, inputs, ["q2_answers"])
    assert found[1][0] > 1000 and cut["q2_answers"].tolist() == [2 * found[1][0], 0]
