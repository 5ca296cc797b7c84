"""Statistics behind quality metrics: where each peer cuts a text, which separator it puts, how many questions
it asks."""

import numpy as np
import pandas as pd
import pytest
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
)

from tests.helpers.readings import encoder, framed
from uetrust.core.settings import oracles
from uetrust.generation.decoding import text_seed
from uetrust.models.forward import Layout
from uetrust.models.likelihoods import directed_logp
from uetrust.models.load import load_model
from uetrust.models.questions import argmax_answers
from uetrust.nlg.qa import AnsweredQuestion, Question
from uetrust.scoring.metrics import compute_metrics
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts import STATISTICS, providers
from uetrust.statistics.texts.providers import shipped_models

reg = load_scores()

LONG, SAID = " ".join(["w1"] * 700), "w2 w3 w4 w5 w6 w7 w8"
WINDOWS = dict(  # Metric -> longest pair of texts in tokens, as in the peer's code
    mnli_doc=512, summac_zs=500, summac_zs_paragraph=500, summac_he2024=512, anli=512
)


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    "An NLI model of random weights that takes 900 tokens, so that only a metric's own window cuts"
    small = encoder()
    config = BertConfig.from_dict(small.model.config.to_dict() | dict(max_position_embeddings=900))
    small.tokenizer.model_max_length = 900
    folder = tmp_path_factory.mktemp("nli")
    BertForSequenceClassification(config).save_pretrained(folder)
    small.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("metric", WINDOWS)
def test_an_nli_metric_cuts_a_pair_at_the_window_of_its_peer(roomy, metric):
    texts = pd.DataFrame(dict(id=["a"], hypothesis=[SAID], source=[LONG], reference=[LONG]))
    scores = compute_metrics(texts, dict(nli=roomy, anli=roomy), [metric], progress=False)
    table = scores.table
    ((_, lost),) = scores.cut.items()
    pair = len(load_model(roomy).tokenizer(LONG, SAID).input_ids)
    assert list(lost.values()) == [pair - WINDOWS[metric]] and table["value"].notna().all()


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


def test_bart_score_of_he2024_and_harim_cut_texts_where_their_authors_did(tmp_path):
    small = framed("bart")
    config = BartConfig.from_dict(small.model.config.to_dict() | dict(max_position_embeddings=900))
    small.tokenizer.model_max_length = 900
    BartForConditionalGeneration(config).save_pretrained(tmp_path)
    small.tokenizer.save_pretrained(tmp_path)
    length = len(load_model(tmp_path).tokenizer(LONG).input_ids)
    texts = pd.DataFrame(dict(id=["a"], hypothesis=[LONG], source=["w2 w3"], reference=[LONG]))
    metrics = ["bart_score_he2024", "harim_plus", "bart_score"]
    cut = compute_metrics(texts, dict(bart=tmp_path), metrics, progress=False).cut
    assert cut == dict(
        bart_he2024=dict(bart256_logp_hypothesis_reference=2 * (length - 256)),
        harim=dict(bart110_logp_source_hypothesis=length - 110, bart110_logp_empty_hypothesis=length - 110),
        bart=dict(bart_logp_source_hypothesis=0),
    )


def test_gpt_score_of_flan_t5_puts_the_templates_of_its_authors_between_the_texts():
    t5 = load_model(shipped_models()["t5"])
    texts = dict(hypothesis=["Rain fell."], source=["It rained."], reference=["Rain."])
    table = compute_metrics(
        pd.DataFrame(dict(id=["a"]) | texts),
        dict(flan=shipped_models()["t5"]),
        ["gpt_score_flan", "gpt_score_flan_precision"],
        progress=False,
    ).table.set_index("name")["value"]
    for metric, way, separator in (
        ("gpt_score_flan", "source_hypothesis", " TL;DR: "),
        ("gpt_score_flan_precision", "reference_hypothesis", " In other words , "),
    ):
        found, _ = directed_logp(t5, "flan", [way], **texts, layout=Layout(window=1024, sep=separator))
        assert table[metric] == pytest.approx(reg[metric].fn(found[f"flan_logp_{way}"][0]), abs=1e-6)
        plain, _ = directed_logp(t5, "flan", [way], **texts, layout=Layout(window=1024))
        assert table[metric] != pytest.approx(reg[metric].fn(plain[f"flan_logp_{way}"][0]), abs=1e-6)


def test_qags_draws_with_a_seed_of_the_text_alone():
    for text in ("a", "b"):
        drawn, known = providers._text_rng(text), np.random.default_rng(text_seed(42, text, 0))
        assert drawn.integers(2**32, size=4).tolist() == known.integers(2**32, size=4).tolist()


@pytest.mark.parametrize("asked", [25, 20, 19, 9])
def test_qags_asks_at_most_twenty_questions(oracle, asked):
    oracle("metrics/triples.json")
    questions = [Question(f"where is w{i} now?", -float(i), "w") for i in range(asked)]
    inputs = dict(hypothesis=["It rained."], source=["Rain fell."], qags_questions=[questions])
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
