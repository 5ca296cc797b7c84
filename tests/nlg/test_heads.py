"""FactCC, AlignScore, DAE, BLEURT and NER overlap: what peers compute on tiny networks, where they fail,
and what must not matter."""

# ruff: noqa: F811

import numpy as np
import pytest

from tests.helpers.heads import folder  # noqa: F401
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.segmentation import split_sentences
from uetrust.models import classifiers as ev
from uetrust.models import heads as hd
from uetrust.models.load import load_model
from uetrust.nlg import heads

TOL = 2e-5


def close(got, want):
    assert got == pytest.approx(want, abs=TOL)


@pytest.fixture(scope="module")
def texts(oracle):
    return {triple["id"]: triple for triple in oracle("metrics/triples.json")["triples"]}


# FactCC
def test_factcc_is_that_of_the_release(oracle, texts, folder):
    want, model = oracle("metrics/factcc.json")["items"], load_model(folder / "tiny_bert_factcc")
    pairs = [(texts[name]["source"], texts[name]["hypothesis"]) for name in want]
    rows, _ = ev.pair_rows(model, pairs, 512, "pop")
    for expected, logits, (ids, segments) in zip(want.values(), ev.factcc_logits(model, pairs)[0], rows):
        close(logits, np.array(expected["logits"]))
        close(
            (heads.factcc(logits), heads.factcc_label(logits), heads.factcc_sentences([logits])),
            (expected["p_correct"], float(expected["argmax_label"] == "CORRECT"), expected["p_correct"]),
        )
        assert (len(ids), sum(segments)) == (expected["n_tokens"], expected["n_claim_tokens"]) and list(
            (ids + (0,) * 12)[:12]
        ) == expected["input_ids_head"][:12]
    with pytest.raises(ValueError, match="found entailment, contradiction, neutral"):
        ev.factcc_logits(load_model(folder / "tiny_bert_nli"), pairs)


# BLEURT
def test_bleurt_is_that_of_the_release(oracle, texts, folder):
    recorded, model = oracle("metrics/bleurt.json"), load_model(folder / "tiny_bert_regression")
    short = {pair["id"]: pair for pair in oracle("metrics/lexical.json")["pairs"]}
    cases = {
        f"max{window}_{other}_first": (texts, "reference" if other == "reference" else "source", window)
        for window in (128, 512)
        for other in ("reference", "source")
    } | dict(max128_lexical_pairs=(short, "reference", 128))
    for key, (items, first, window) in cases.items():
        want = recorded["scores"][key]
        pairs = [(items[name][first], items[name]["hypothesis"]) for name in want]
        got, over = ev.regression_values(model, pairs, window)
        for (name, expected), value, (ids, segments) in zip(
            want.items(), got, ev.pair_rows(model, pairs, window, "pop")[0]
        ):
            metric = heads.bleurt if first == "reference" else heads.bleurt_source
            close(metric(value), expected["score"] if isinstance(expected, dict) else expected)
            if isinstance(expected, dict):
                assert (len(ids), sum(segments)) == (expected["n_tokens"], expected["n_candidate_tokens"]), (
                    name
                )
        assert over.any() == any(
            len(row[0]) == window for row in ev.pair_rows(model, pairs, window, "pop")[0]
        )
    ((ids, segments),) = ev.pair_rows(
        model, [(texts["email"]["reference"], texts["email"]["hypothesis"])], 128, "pop"
    )[0]
    assert (list(ids), list(segments)) == (
        recorded["encoded_email"]["input_ids"],
        recorded["encoded_email"]["segment_ids"],
    )


# AlignScore
SCORES = dict(
    nli=(heads.alignscore, "align_three"),
    bin=(heads.alignscore_binary, "align_binary"),
    reg=(heads.alignscore_regression, "align_regression"),
)


def test_alignscore_is_that_of_the_release(oracle, texts, folder):
    recorded, model, head = (
        oracle("metrics/alignscore.json"),
        load_model(folder / "tiny_roberta"),
        folder / "heads/alignscore_heads.safetensors",
    )
    ids = list(recorded["scores"]["nli"])
    whole, _ = hd.alignscore_logits(
        model, head, [([texts[name]["source"]], [texts[name]["hypothesis"]]) for name in ids]
    )
    parted, cut = hd.alignscore_logits(
        model,
        head,
        [
            (heads.alignscore_chunks(texts[name]["source"]), split_sentences(texts[name]["hypothesis"]))
            for name in ids
        ],
    )
    for mode, (score, leaf) in SCORES.items():
        close([score(output) for output in whole[leaf]], [recorded["scores"][mode][name] for name in ids])
        close(
            [score(output) for output in parted[leaf]],
            [recorded["scores"][f"{mode}_sp"][name] for name in ids],
        )
    for name, regression, binary, three in zip(
        ids, *(whole[f"align_{mode}"] for mode in ("regression", "binary", "three"))
    ):
        raw = recorded["raw_whole_text"][name]
        close(
            (heads.alignscore_regression(regression), heads.alignscore_binary(binary)),
            (raw["reg"], raw["bin_aligned"]),
        )
        close(heads.nli_probabilities(three)[0, 0], np.array(raw["tri"]))
    assert cut.shape == (len(ids),)


def test_alignscore_of_empty_texts(oracle, texts, folder):
    recorded, model, head = (
        oracle("metrics/alignscore.json"),
        load_model(folder / "tiny_roberta"),
        folder / "heads/alignscore_heads.safetensors",
    )
    assert recorded["empty_claim"] == {"error": "ValueError"} and heads.alignscore_chunks("") == [""]
    logits, _ = hd.alignscore_logits(
        model, head, [([""], split_sentences(texts["harwich"]["hypothesis"])), ([""], [])]
    )
    with pytest.raises(Undefined, match="no sentence"):
        heads.alignscore(logits["align_three"][1])
    assert 0 < heads.alignscore(logits["align_three"][0]) < 1


def test_chunks_are_those_of_alignscore(oracle):
    for item in oracle("metrics/sentence_splits.json")["items"]:
        if "alignscore" in item:
            assert heads.alignscore_chunks(item["text"]) == (item["alignscore"]["chunks"] or [""])


# DAE
def test_dae_is_that_of_the_release(oracle, folder):
    items = oracle("metrics/dae.json")["items"]
    model, head = (
        load_model(folder / "tiny_electra_qa"),
        folder / "heads/dae_dep_label_classifier.safetensors",
    )
    given = [
        (
            item["source_tokens"].replace("...", " ".join(["storm"] * 200)),
            item["summary_tokens"],
            [(arc["label"], arc["child_index"], arc["head_index"]) for arc in item["arcs"]],
        )
        for item in items
    ]
    for item, logits in zip(items, hd.dae_arc_logits(model, head, given)):
        if item["rejected"]:
            assert logits is None
            with pytest.raises(Undefined, match="128 tokens"):
                heads.dae(logits)
        else:
            close(1 / (1 + np.exp(logits[:, 0] - logits[:, 1])), np.array(item["arc_probabilities"]))
            close(heads.dae(logits), item["score"])
            assert len(logits) <= 20
    (silent,) = hd.dae_arc_logits(model, head, [("Rain fell .", "Rain fell .", [("punct", 2, 1)])])
    assert silent is None


# Names
def test_ner_overlap_is_that_of_summac(oracle):
    for item in oracle("metrics/ner_overlap.json")["items"]:
        of_summary, of_source = (
            [(entity["text"], entity["type"]) for entity in item[f"{side}_entities"]]
            for side in ("summary", "source")
        )
        assert (
            heads.ner_overlap(of_summary, of_source, item["source_text"])
            == item["overlap_score"]
            == 1 - item["penalty"]
        ), item["name"]
        assert heads._unsupported_entities(of_summary, of_source, item["source_text"]) == [
            (entity["text"], entity["type"]) for entity in item["unsupported"]
        ], item["name"]


def test_entities_without_spacy_say_what_to_install():
    try:
        import spacy  # noqa: F401
    except ImportError:
        with pytest.raises(LookupError, match="pip install spacy"):
            heads.named_entities(["Harwich"])


# What must not matter
def test_batches_and_order_do_not_matter(texts, folder):
    model, head = load_model(folder / "tiny_roberta"), folder / "heads/alignscore_heads.safetensors"
    grids = [
        ([texts[name]["source"]], [texts[name]["hypothesis"]])
        for name in ("harwich", "moon", "tiny", "lines")
    ]
    one, other, back = (
        hd.alignscore_logits(model, head, given, **kw)[0]["align_three"]
        for given, kw in ((grids, {}), (grids, dict(batch_tokens=1)), (grids[::-1], {}))
    )
    for once, single, reversed_order in zip(one, other, back[::-1]):
        np.testing.assert_allclose(
            heads.nli_probabilities(single), heads.nli_probabilities(once), atol=2e-6, rtol=0
        )
        np.testing.assert_allclose(
            heads.nli_probabilities(reversed_order), heads.nli_probabilities(once), atol=2e-6, rtol=0
        )


def test_every_entry_is_complete():
    for name, entry in reg.items():
        if entry.fn.__module__ == heads.__name__:
            assert all((entry.formula, entry.pitfall, entry.unit, entry.cite, entry.dim)), name
