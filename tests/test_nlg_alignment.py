"""BERTScore, CTC and the embedding correlation: what peers compute on tiny networks, where they fail, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.models import classifiers as ev
from uetrust.models import heads as hd
from uetrust.models.load import load
from uetrust.nlg import alignment as al

TOL = 2e-5
STOP = set(
    """i me my we our ours you your yours he him his himself she her hers herself it its itself they them their theirs what which who whom this that these those am is are was were be been being have has had having do does did doing
    a an the and but if or because as until while of at by for with about against between into through during before after above below to from up down in out on off over under again further then once here there when where why how all any both each few more most other some such
    no nor not only own same so than too very s t can will just don should now d ll m o re ve y ma""".split()
)  # The stop words of NLTK, without contractions


def close(got, want):
    assert got == pytest.approx(want, abs=TOL)


@pytest.fixture(scope="module")
def texts(oracle):
    return {t["id"]: t for t in oracle("metrics/triples.json")["triples"]}


@pytest.fixture(scope="module")
def short(oracle):
    return {t["id"]: t for t in oracle("metrics/lexical.json")["pairs"]}


@pytest.fixture(scope="module")
def models(oracle):
    oracle("metrics/triples.json")
    seen = {}

    def get(name):
        if name not in seen:
            seen[name] = load(oracles() / f"metrics/models/{name}")
        return seen[name]

    return get


@pytest.fixture(scope="module")
def cosines(texts, models):
    "Cosines by the other text and layer"
    seen = {}

    def get(other, layer, ids):
        key = other, layer, tuple(ids)
        if key not in seen:
            seen[key] = ev.cosines(
                models("tiny_roberta"), [(texts[i]["hypothesis"], texts[i][other]) for i in ids], layer
            )[0]
        return dict(zip(ids, seen[key]))

    return get


# BERTScore
@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("other,key", [("reference", "ref"), ("source", "source")])
def test_bertscore_is_that_of_bert_score(oracle, cosines, layer, other, key):
    want = oracle("metrics/bertscore.json")["scores"][f"slow_L{layer}_hyp_vs_{key}"]
    for i, c in cosines(other, layer, want).items():
        close(al.bertscore(c), np.array([*want[i].values()]))


def test_bertscore_of_odd_texts(oracle, short, models):
    want = oracle("metrics/bertscore.json")["scores"]["slow_L2_lexical_pairs"]
    for i, c in zip(
        want,
        ev.cosines(
            models("tiny_roberta"), [(short[i]["hypothesis"], short[i]["reference"]) for i in want], 2
        )[0],
    ):
        if i in ("empty_ref", "both_empty"):
            assert not any(want[i].values())  # Upstream gives 0 without a reference
            with pytest.raises(Undefined, match="no token"):
                al.bertscore_f1(c)
        else:
            close(
                [f(c) for f in (al.bertscore_precision, al.bertscore_recall, al.bertscore_f1)],
                [*want[i].values()],
            )
    assert want["empty_hyp"]["F"] == 0


def test_several_references_idf_and_rescaling(oracle, texts, models, cosines):
    scores, m = oracle("metrics/bertscore.json")["scores"], models("tiny_roberta")
    want = scores["slow_L2_multi_ref"]
    ref, src = (cosines(o, 2, want) for o in ("reference", "source"))
    for i in want:
        close(al.bertscore([ref[i], src[i]]), np.array([*want[i].values()]))
    want = scores["slow_L2_idf_refs_hyp_vs_ref"]
    others = [
        t["text"]
        for t in oracle("metrics/sentence_splits.json")["items"]
        if t["text"].startswith(("Second quarter", "The class discusses", "Tomatoes grew in imitation"))
    ]  # References of three items that triples.json does not list
    corpus = [t["reference"] for t in texts.values()] + others
    w = [ev.idf(m, [texts[i][k] for i in want], corpus) for k in ("hypothesis", "reference")]
    for i, h, r in zip(want, *w):
        close(al.bertscore(ref[i], h, r), np.array([*want[i].values()]))
        close(al.bertscore_f1_idf(ref[i], h, r), want[i]["F"])
    for i, x in scores["slow_L2_rescaled_0.4_0.41_0.42"].items():
        close(al.bertscore_f1_rescaled(ref[i], 0.42), x["F"])
    known = {int(k): v for k, v in oracle("metrics/bertscore.json")["idf_head"].items()}
    ids = {
        i: x
        for k, t in enumerate(texts[i]["reference"] for i in want)
        for i, x in zip(ev.text_rows(m, [ev.spaced(m, t)])[0][0][0], w[1][k])
    }
    assert {k: v for k, v in known.items() if k in ids} == pytest.approx(
        {k: ids[k] for k in known if k in ids}, abs=1e-6
    )


def test_the_space_before_a_text_of_roberta_is_there(oracle, texts, models, cosines):
    b, m = oracle("metrics/bertscore.json"), models("tiny_roberta")
    for i, ids in b["encoded_hypotheses"].items():
        assert list(ev.text_rows(m, [ev.spaced(m, texts[i]["hypothesis"])])[0][0][0]) == ids
    (lost,), (have,) = (
        [x["harwich"]["F"]] for x in (b["scores"]["fast_L2_hyp_vs_ref"], b["scores"]["slow_L2_hyp_vs_ref"])
    )
    assert (
        abs(al.bertscore_f1(cosines("reference", 2, b["scores"]["slow_L2_hyp_vs_ref"])["harwich"]) - have)
        < TOL
        < abs(lost - have)
    )
    assert (
        ev.spaced(m, " a b ") == " a b"
        and ev.spaced(m, " \n") == ""
        and ev.spaced(models("tiny_bert_nli"), " a") == "a"
    )


def test_packaged_baselines(oracle):
    assert al.BASELINES == {
        k: tuple(v.values()) for k, v in oracle("metrics/bertscore.json")["published_baselines"].items()
    }


# CTC
@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("other,key", [("reference", "hyp_given_ref"), ("source", "hyp_given_source")])
def test_the_embedding_aligner_is_that_of_ctc(oracle, texts, models, cosines, layer, other, key):
    s, m = oracle("metrics/ctc.json")["scores"], models("tiny_roberta")
    f = dict(reference=al.ctc_he2024, source=al.ctc_embedding)[other]
    for i, c in cosines(other, layer, s[f"E_layers{layer}_mean"][key]).items():
        row = ev.text_rows(m, [ev.spaced(m, texts[i]["hypothesis"])])[0][0][0]
        tokens = [m.tokenizer.decode([t]) for t in row[1:-1]]
        close(f(c), s[f"E_layers{layer}_mean"][key][i])
        close(al.aggregate(al.nearest(c), "sum"), pytest.approx(s[f"E_layers{layer}_sum"][key][i], rel=1e-6))
        for agg in ("mean", "sum"):
            assert al.aggregate(al.nearest(c), agg, tokens, STOP) == pytest.approx(
                s[f"E_layers{layer}_{agg}_nostop"][key][i], abs=TOL, rel=1e-6
            )


def test_relevance_of_the_embedding_aligner(oracle, texts, models, cosines):
    s = oracle("metrics/ctc.json")["scores"]
    want = s["E_layers2_relevance"]
    ref, src = (cosines(o, 2, want) for o in ("reference", "source"))
    for i, w in want.items():
        if isinstance(w, dict):  # An empty summary is an empty context: upstream fails
            with pytest.raises(Undefined):
                al.ctc_embedding_relevance(src[i], ref[i])
        else:
            close(al.ctc_embedding_relevance(src[i], ref[i]), w)
            close(
                al.ctc_embedding_relevance(src[i], [ref[i], src[i]]),
                (w + al.ctc_embedding_relevance(src[i], src[i])) / 2,
            )  # Several references: the mean
    assert (
        s["E_layers2_edge"] == {"empty_context": {"error": "IndexError"}, "empty_input": 0.0}
        and al.ctc_embedding(src["empty_hyp"]) == 0
    )


def test_the_word_aligner_is_that_of_ctc(oracle, texts, models):
    ctc, m, head = (
        oracle("metrics/ctc.json"),
        models("tiny_roberta"),
        oracles() / "metrics/models/heads/ctc_disc_classifier.safetensors",
    )
    for key, other in (("hyp_given_source", "source"), ("hyp_given_ref", "reference")):
        want = ctc["scores"]["D_mean"][key]
        z, _ = hd.kept_words(m, head, [(texts[i]["hypothesis"], texts[i][other]) for i in want])
        for i, x in zip(want, z):
            if i == "lines":
                assert want[i] is None and 0 < al.ctc(x) < 1  # A line break: no number upstream
            elif i == "empty_hyp":
                with pytest.raises(Undefined, match="no word"):
                    al.ctc(x)
            else:
                close(al.ctc(x), want[i])
                assert al.aggregate(al.kept(x), "sum") == pytest.approx(
                    ctc["scores"]["D_sum"][key][i], rel=1e-6
                )
                words = hd.cleaned(texts[i]["hypothesis"], lines=False).split()
                for agg in ("mean", "sum"):
                    if len(words) == len(x):
                        assert al.aggregate(al.kept(x), agg, words, STOP) == pytest.approx(
                            ctc["scores"][f"D_{agg}_nostop"][key][i], abs=TOL, rel=1e-6
                        )
    said = [t["text"] for t in oracle("metrics/sentence_splits.json")["items"]]
    quotes = {
        k: next(t for t in said if t.startswith(b))
        for k, b in (("source", "Curly"), ("hypothesis", "Prices rose"))
    }  # An item that triples.json does not list
    for k in ("D_harwich", "D_quotes", "D_moon"):
        d, t = ctc["detail"][k], texts[k[2:]] if k[2:] in texts else quotes
        (x,) = hd.kept_words(m, head, [(t["hypothesis"], t[d["context"]])])[0]
        close(al.kept(x), np.array(d["keep_probability"]))
        assert hd.cleaned(t["hypothesis"]).split() == d["words"]


def test_cleaned_texts_are_those_of_ctc(oracle, texts):
    for i, want in oracle("metrics/ctc.json")["cleaned_hypotheses"].items():
        assert hd.cleaned(texts[i]["hypothesis"]) == (want or "")


def test_the_regression_aligner_is_that_of_ctc_but_for_an_empty_summary(oracle, texts, models):
    m = models("tiny_bert_regression")
    for key, other in (("hyp_given_source", "source"), ("hyp_given_ref", "reference")):
        want = oracle("metrics/ctc.json")["scores"]["R"][key]
        got, _ = ev.regress(m, [(texts[i][other], texts[i]["hypothesis"]) for i in want], 512, "longest")
        for i, v in zip(want, got):
            if i != "empty_hyp":
                close(al.ctc_regression(v), want[i])
        alone = ev.run_rows(
            m, ev.text_rows(m, [texts["empty_hyp"][other]])[0], lambda model, t: model(**t).logits
        )[0][0]  # As strings: the tokenizer drops the empty one
        close(alone, want["empty_hyp"])
        assert abs(got[list(want).index("empty_hyp")] - alone) > 0.01


# Embeddings
def test_embeddings_and_their_correlations_are_those_of_the_release(oracle, texts, short):
    want = oracle("metrics/embedding_correlation.json")
    e = ev.sentence_encoder(oracles() / "metrics/models/tiny_sbert")
    of = {k: short if k.endswith("lexical") else texts for k in want["scores"]}
    at = list(
        dict.fromkeys(
            of[k][i][f] for k, s in want["scores"].items() for i in s for f in ("hypothesis", "reference")
        )
    )
    v, over = ev.vectors(e, at)
    v = dict(zip(at, v))
    assert e.window == 128 and over.any()
    for i, x in want["embeddings"].items():
        for k, y in x.items():
            np.testing.assert_allclose(v[texts[i][k]], y, atol=1e-5, rtol=0)
    for key, s in want["scores"].items():
        f = al.embedding_spearman if key.startswith("spearman") else al.embedding_kendall
        for i, y in s.items():
            close(f(v[of[key][i]["hypothesis"]], v[of[key][i]["reference"]]), y)
    tie = want["tie_example"]
    close(
        (al.embedding_spearman(tie["x"], tie["y"]), al.embedding_kendall(tie["x"], tie["y"])),
        (tie["spearman"], tie["kendall_tau_b"]),
    )
    with pytest.raises(Undefined, match="no ranks"):
        al.embedding_kendall(tie["x"], [1.0] * 8)


# What must not matter
def test_batches_and_order_do_not_matter(texts, models):
    m = models("tiny_roberta")
    pairs = [
        (texts[i]["hypothesis"], texts[i]["reference"])
        for i in ("harwich", "moon", "tiny", "lines", "empty_hyp")
    ]
    one, _ = ev.cosines(m, pairs, 2)
    for other in (
        ev.cosines(m, pairs, 2, batch_tokens=1)[0],
        ev.cosines(m, pairs[::-1], 2)[0][::-1],
        ev.cosines(m, pairs, 2, items=2)[0],
    ):
        for a, b in zip(one, other):
            np.testing.assert_allclose(a, b, atol=2e-6, rtol=0)


def test_a_text_is_closest_to_itself(models):
    c, _ = ev.cosines(
        models("tiny_roberta"),
        [
            ("The fire was put out.", "The fire was put out."),
            ("out hall put rain dogs", "The fire was put out."),
        ],
        2,
    )
    for f in (al.bertscore_f1, al.bertscore_precision, al.bertscore_recall, al.ctc_he2024):
        assert abs(f(c[0]) - 1) < 1e-6 and f(c[1]) < 0.999


@given(arrays(float, (5, 4), elements=st.floats(0, 1)), st.floats(0, 0.5))
def test_closer_tokens_are_never_worse(c, more):
    for f in (al.bertscore_f1, al.bertscore_precision, al.bertscore_recall, al.ctc_he2024, al.ctc_embedding):
        assert f(c + more) >= f(c) - 1e-12


def test_every_entry_is_complete():
    for n, e in reg.items():
        if e.fn.__module__ == al.__name__:
            assert all((e.formula, e.trap, e.unit, e.cite, e.dim)), n


def test_the_layer_belongs_to_the_checkpoint_wherever_it_lies():
    assert [
        al.layer(m)
        for m in (
            "microsoft/deberta-xlarge-mnli",
            "/models/deberta-xlarge-mnli/",
            "roberta-large",
            "bert-base-multilingual-cased",
            "tiny-encoder",
        )
    ] == [40, 40, 17, 9, None]
