"""Statistics behind quality metrics: where each peer cuts a text, which separator it puts, how many questions
it asks."""

import pandas as pd
import pytest
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
)

from tests.helpers.readings import framed, save_roomy
from uetrust.models.forward import Layout
from uetrust.models.likelihoods import directed_logp
from uetrust.models.load import load_model
from uetrust.scoring.metrics import compute_metrics, missing_inputs
from uetrust.statistics.scores import load_scores
from uetrust.statistics.texts import STATISTICS
from uetrust.statistics.texts.providers import shipped_models

reg = load_scores()

LONG, SAID = " ".join(["w1"] * 700), "w2 w3 w4 w5 w6 w7 w8"
WINDOWS = dict(  # Metric -> longest pair of texts in tokens, as in the peer's code
    mnli_doc=512, summac_zs=500, summac_zs_paragraph=500, summac_he2024=512, anli=512
)


@pytest.fixture(scope="module")
def roomy(tmp_path_factory):
    return save_roomy(tmp_path_factory.mktemp("nli"))


@pytest.mark.parametrize("metric", WINDOWS)
def test_an_nli_metric_cuts_a_pair_at_the_window_of_its_peer(roomy, metric):
    texts = pd.DataFrame(dict(id=["a"], hypothesis=[SAID], source=[LONG], reference=[LONG]))
    scores = compute_metrics(texts, dict(nli=roomy, anli=roomy), [metric], progress=False)
    table = scores.table
    ((_, lost),) = scores.cut.items()
    pair = len(load_model(roomy).tokenizer(LONG, SAID).input_ids)
    assert list(lost.values()) == [pair - WINDOWS[metric]] and table["value"].notna().all()


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


SHOWN = dict(wo=["reference"], wi_gt=["reference"], wi_in=["source"], wi_ingt=["source", "reference"])


@pytest.mark.parametrize("family", SHOWN)
def test_a_judge_needs_the_texts_that_it_is_shown(family):
    "The release shows the reference as the original text where it asks without definitions."
    models = dict(judge=shipped_models()["judge_own"])
    missing = missing_inputs(f"judge_{family}_overall", {"hypothesis"}, models)
    assert missing == [f"the column {name}" for name in SHOWN[family]]


def test_likelihoods_take_several_references_of_a_text_at_once():
    takes = {name for name, entry in STATISTICS.items() if entry.takes_reference_lists}
    assert takes == {"bart", "bart_he2024", "harim", "t5", "gpt", "flan", "echo"}
