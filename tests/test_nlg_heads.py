"""FactCC, AlignScore, DAE, BLEURT and NER overlap: what peers compute on tiny networks, where they fail, and what must not matter."""

import numpy as np
import pytest

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.models import classifiers as ev
from uetrust.models import heads as hd
from uetrust.models.load import load
from uetrust.nlg import heads

TOL = 2e-5


def close(got, want):
    assert got == pytest.approx(want, abs=TOL)


@pytest.fixture(scope="module")
def texts(oracle):
    return {t["id"]: t for t in oracle("metrics/triples.json")["triples"]}


@pytest.fixture(scope="module")
def folder(oracle):
    oracle("metrics/triples.json")
    return oracles() / "metrics/models"


@pytest.fixture(scope="module")
def split(oracle):
    known = {i["text"]: i["punkt"] for i in oracle("metrics/sentence_splits.json")["items"]}
    return known.__getitem__


# FactCC
def test_factcc_is_that_of_the_release(oracle, texts, folder):
    want, m = oracle("metrics/factcc.json")["items"], load(folder / "tiny_bert_factcc")
    pairs = [(texts[i]["source"], texts[i]["hypothesis"]) for i in want]
    rows, _ = ev.pair_rows(m, pairs, 512, "pop")
    for w, z, (ids, segments) in zip(want.values(), ev.factcc(m, pairs)[0], rows):
        close(z, np.array(w["logits"]))
        close(
            (heads.factcc(z), heads.factcc_label(z), heads.factcc_sentences([z])),
            (w["p_correct"], float(w["argmax_label"] == "CORRECT"), w["p_correct"]),
        )
        assert (len(ids), sum(segments)) == (w["n_tokens"], w["n_claim_tokens"]) and list(
            (ids + (0,) * 12)[:12]
        ) == w["input_ids_head"][:12]
    with pytest.raises(ValueError, match="found entailment, contradiction, neutral"):
        ev.factcc(load(folder / "tiny_bert_nli"), pairs)


# BLEURT
def test_bleurt_is_that_of_the_release(oracle, texts, folder):
    b, m = oracle("metrics/bleurt.json"), load(folder / "tiny_bert_regression")
    short = {p["id"]: p for p in oracle("metrics/lexical.json")["pairs"]}
    cases = {
        f"max{n}_{o}_first": (texts, "reference" if o == "reference" else "source", n)
        for n in (128, 512)
        for o in ("reference", "source")
    } | dict(max128_lexical_pairs=(short, "reference", 128))
    for key, (of, first, n) in cases.items():
        want = b["scores"][key]
        pairs = [(of[i][first], of[i]["hypothesis"]) for i in want]
        got, over = ev.regress(m, pairs, n)
        for (i, w), v, (ids, segments) in zip(want.items(), got, ev.pair_rows(m, pairs, n, "pop")[0]):
            f = heads.bleurt if first == "reference" else heads.bleurt_source
            close(f(v), w["score"] if isinstance(w, dict) else w)
            if isinstance(w, dict):
                assert (len(ids), sum(segments)) == (w["n_tokens"], w["n_candidate_tokens"]), i
        assert over.any() == any(len(r[0]) == n for r in ev.pair_rows(m, pairs, n, "pop")[0])
    ((ids, segments),) = ev.pair_rows(
        m, [(texts["email"]["reference"], texts["email"]["hypothesis"])], 128, "pop"
    )[0]
    assert (list(ids), list(segments)) == (b["encoded_email"]["input_ids"], b["encoded_email"]["segment_ids"])


# AlignScore
SCORES = dict(
    nli=(heads.alignscore, "align_three"),
    bin=(heads.alignscore_binary, "align_binary"),
    reg=(heads.alignscore_regression, "align_regression"),
)


def test_alignscore_is_that_of_the_release(oracle, texts, folder, split):
    a, m, head = (
        oracle("metrics/alignscore.json"),
        load(folder / "tiny_roberta"),
        folder / "heads/alignscore_heads.safetensors",
    )
    ids = list(a["scores"]["nli"])
    whole, _ = hd.align_grids(m, head, [([texts[i]["source"]], [texts[i]["hypothesis"]]) for i in ids])
    parted, cut = hd.align_grids(
        m, head, [(heads.align_chunks(texts[i]["source"], split), split(texts[i]["hypothesis"])) for i in ids]
    )
    for k, (f, leaf) in SCORES.items():
        close([f(x) for x in whole[leaf]], [a["scores"][k][i] for i in ids])
        close([f(x) for x in parted[leaf]], [a["scores"][f"{k}_sp"][i] for i in ids])
    for i, r, b, t in zip(ids, *(whole[f"align_{k}"] for k in ("regression", "binary", "three"))):
        raw = a["raw_whole_text"][i]
        close((heads.alignscore_regression(r), heads.alignscore_binary(b)), (raw["reg"], raw["bin_aligned"]))
        close(heads.probabilities(t)[0, 0], np.array(raw["tri"]))
    assert cut.shape == (len(ids),)


def test_alignscore_of_empty_texts(oracle, texts, folder, split):
    a, m, head = (
        oracle("metrics/alignscore.json"),
        load(folder / "tiny_roberta"),
        folder / "heads/alignscore_heads.safetensors",
    )
    assert a["empty_claim"] == {"error": "ValueError"} and heads.align_chunks("", split) == [""]
    z, _ = hd.align_grids(m, head, [([""], split(texts["harwich"]["hypothesis"])), ([""], [])])
    with pytest.raises(Undefined, match="no sentence"):
        heads.alignscore(z["align_three"][1])
    assert 0 < heads.alignscore(z["align_three"][0]) < 1


def test_chunks_are_those_of_alignscore(oracle, split):
    for i in oracle("metrics/sentence_splits.json")["items"]:
        if "alignscore" in i:
            assert heads.align_chunks(i["text"], split) == (i["alignscore"]["chunks"] or [""])


# DAE
def test_dae_is_that_of_the_release(oracle, folder):
    items = oracle("metrics/dae.json")["items"]
    m, head = load(folder / "tiny_electra_qa"), folder / "heads/dae_dep_label_classifier.safetensors"
    given = [
        (
            d["source_tokens"].replace("...", " ".join(["storm"] * 200)),
            d["summary_tokens"],
            [(a["label"], a["child_index"], a["head_index"]) for a in d["arcs"]],
        )
        for d in items
    ]
    for d, z in zip(items, hd.arcs(m, head, given)):
        if d["rejected"]:
            assert z is None
            with pytest.raises(Undefined, match="128 tokens"):
                heads.dae(z)
        else:
            close(1 / (1 + np.exp(z[:, 0] - z[:, 1])), np.array(d["arc_probabilities"]))
            close(heads.dae(z), d["score"])
            assert len(z) <= 20
    (silent,) = hd.arcs(m, head, [("Rain fell .", "Rain fell .", [("punct", 2, 1)])])
    assert silent is None


# Names
def test_ner_overlap_is_that_of_summac(oracle):
    for i in oracle("metrics/ner_overlap.json")["items"]:
        h, s = ([(e["text"], e["type"]) for e in i[f"{k}_entities"]] for k in ("summary", "source"))
        assert heads.ner_overlap(h, s, i["source_text"]) == i["overlap_score"] == 1 - i["penalty"], i["name"]
        assert heads.unsupported(h, s, i["source_text"]) == [
            (e["text"], e["type"]) for e in i["unsupported"]
        ], i["name"]


def test_entities_without_spacy_say_what_to_install():
    try:
        import spacy  # noqa: F401
    except ImportError:
        with pytest.raises(LookupError, match="pip install spacy"):
            heads.entities(["Harwich"])


# What must not matter
def test_batches_and_order_do_not_matter(texts, folder):
    m, head = load(folder / "tiny_roberta"), folder / "heads/alignscore_heads.safetensors"
    g = [([texts[i]["source"]], [texts[i]["hypothesis"]]) for i in ("harwich", "moon", "tiny", "lines")]
    one, other, back = (
        hd.align_grids(m, head, x, **kw)[0]["align_three"]
        for x, kw in ((g, {}), (g, dict(batch_tokens=1)), (g[::-1], {}))
    )
    for a, b, c in zip(one, other, back[::-1]):
        np.testing.assert_allclose(heads.probabilities(b), heads.probabilities(a), atol=2e-6, rtol=0)
        np.testing.assert_allclose(heads.probabilities(c), heads.probabilities(a), atol=2e-6, rtol=0)


def test_a_t5_that_answers_1_or_0(folder):
    m = load(folder / "tiny_t5")
    z, cut = hd.true_nli(m, [("Rain fell.", "Dogs ran."), ("Rain fell. " * 400, "Dogs ran.")])
    assert z.shape == (2, 2) and (z < 0).all() and cut[0] == 0 < cut[1]
    np.testing.assert_allclose(hd.true_nli(m, [("Rain fell.", "Dogs ran.")])[0][0], z[0], atol=1e-5)


def test_every_entry_is_complete():
    for n, e in reg.items():
        if e.fn.__module__ == heads.__name__:
            assert all((e.formula, e.trap, e.unit, e.cite, e.dim)), n
