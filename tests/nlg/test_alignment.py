"""BERTScore, CTC and the embedding correlation: what peers compute on tiny networks, where they fail, and
what must not matter."""

# ruff: noqa: F811

import json
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.helpers.alignment import texts  # noqa: F401
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.models import classifiers as ev
from uetrust.models import heads as hd
from uetrust.models.load import load_model
from uetrust.nlg import alignment as al

TOL = 2e-5
STOP = set(
    """i me my we our ours you your yours he him his himself she her hers herself it its itself they them
    their theirs what which who whom this that these those am is are was were be been being have has had
    having do does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on off over
    under again further then once here there when where why how all any both each few more most other
    some such no nor not only own same so than too very s t can will just don should now d ll m o re ve
    y ma""".split()
)  # The stop words of NLTK, without contractions


def close(got, want):
    assert got == pytest.approx(want, abs=TOL)


@pytest.fixture(scope="module")
def short(oracle):
    return {text["id"]: text for text in oracle("metrics/lexical.json")["pairs"]}


@pytest.fixture(scope="module")
def models(oracle):
    oracle("metrics/triples.json")
    seen = {}

    def get(name):
        if name not in seen:
            seen[name] = load_model(oracles() / f"metrics/models/{name}")
        return seen[name]

    return get


@pytest.fixture(scope="module")
def cosines(texts, models):
    "Cosines by the other text and layer"
    seen = {}

    def get(other, layer, ids):
        key = other, layer, tuple(ids)
        if key not in seen:
            seen[key] = ev.token_cosines(
                models("tiny_roberta"), [(texts[i]["hypothesis"], texts[i][other]) for i in ids], layer
            )[0]
        return dict(zip(ids, seen[key]))

    return get


# BERTScore
@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("other,key", [("reference", "ref"), ("source", "source")])
def test_bertscore_is_that_of_bert_score(oracle, cosines, layer, other, key):
    want = oracle("metrics/bertscore.json")["scores"][f"slow_L{layer}_hyp_vs_{key}"]
    for name, matrix in cosines(other, layer, want).items():
        close(al.bertscore(matrix), np.array([*want[name].values()]))


def test_bertscore_of_odd_texts(oracle, short, models):
    want = oracle("metrics/bertscore.json")["scores"]["slow_L2_lexical_pairs"]
    for name, matrix in zip(
        want,
        ev.token_cosines(
            models("tiny_roberta"),
            [(short[name]["hypothesis"], short[name]["reference"]) for name in want],
            2,
        )[0],
    ):
        if name in ("empty_ref", "both_empty"):
            assert not any(want[name].values())  # Upstream gives 0 without a reference
            with pytest.raises(Undefined, match="no token"):
                al.bertscore_f1(matrix)
        else:
            close(
                [metric(matrix) for metric in (al.bertscore_precision, al.bertscore_recall, al.bertscore_f1)],
                [*want[name].values()],
            )
    assert want["empty_hyp"]["F"] == 0


def test_several_references_idf_and_rescaling(oracle, texts, models, cosines):
    scores, model = oracle("metrics/bertscore.json")["scores"], models("tiny_roberta")
    want = scores["slow_L2_multi_ref"]
    ref, src = (cosines(other, 2, want) for other in ("reference", "source"))
    for i in want:
        close(al.bertscore([ref[i], src[i]]), np.array([*want[i].values()]))
    want = scores["slow_L2_idf_refs_hyp_vs_ref"]
    others = [
        text["text"]
        for text in oracle("metrics/sentence_splits.json")["items"]
        if text["text"].startswith(("Second quarter", "The class discusses", "Tomatoes grew in imitation"))
    ]  # References of three items that triples.json does not list
    corpus = [text["reference"] for text in texts.values()] + others
    weights = [
        ev.idf_weights(model, [texts[i][k] for i in want], corpus) for k in ("hypothesis", "reference")
    ]
    for i, hypothesis_weights, reference_weights in zip(want, *weights):
        close(al.bertscore(ref[i], hypothesis_weights, reference_weights), np.array([*want[i].values()]))
        close(al.bertscore_f1_idf(ref[i], hypothesis_weights, reference_weights), want[i]["F"])
    for i, expected in scores["slow_L2_rescaled_0.4_0.41_0.42"].items():
        close(al.bertscore_f1_rescaled(ref[i], 0.42), expected["F"])
    known = {int(k): v for k, v in oracle("metrics/bertscore.json")["idf_head"].items()}
    ids = {
        i: expected
        for k, text in enumerate(texts[i]["reference"] for i in want)
        for i, expected in zip(ev.text_rows(model, [ev.bert_score_text(model, text)])[0][0][0], weights[1][k])
    }
    assert {k: v for k, v in known.items() if k in ids} == pytest.approx(
        {k: ids[k] for k in known if k in ids}, abs=1e-6
    )


def test_the_space_before_a_text_of_roberta_is_there(oracle, texts, models, cosines):
    recorded, model = oracle("metrics/bertscore.json"), models("tiny_roberta")
    for i, ids in recorded["encoded_hypotheses"].items():
        assert list(ev.text_rows(model, [ev.bert_score_text(model, texts[i]["hypothesis"])])[0][0][0]) == ids
    (shortened,), (have,) = (
        [scores["harwich"]["F"]]
        for scores in (recorded["scores"]["fast_L2_hyp_vs_ref"], recorded["scores"]["slow_L2_hyp_vs_ref"])
    )
    assert (
        abs(
            al.bertscore_f1(cosines("reference", 2, recorded["scores"]["slow_L2_hyp_vs_ref"])["harwich"])
            - have
        )
        < TOL
        < abs(shortened - have)
    )
    assert (
        ev.bert_score_text(model, " a b ") == " a b"
        and ev.bert_score_text(model, " \n") == ""
        and ev.bert_score_text(models("tiny_bert_nli"), " a") == "a"
    )


def test_packaged_baselines(oracle):
    assert al.BERTSCORE_BASELINES == {
        k: tuple(v.values()) for k, v in oracle("metrics/bertscore.json")["published_baselines"].items()
    }


# CTC
@pytest.mark.parametrize("layer", [1, 2])
@pytest.mark.parametrize("other,key", [("reference", "hyp_given_ref"), ("source", "hyp_given_source")])
def test_the_embedding_aligner_is_that_of_ctc(oracle, texts, models, cosines, layer, other, key):
    scores, model = oracle("metrics/ctc.json")["scores"], models("tiny_roberta")
    metric = dict(reference=al.ctc_he2024, source=al.ctc_embedding)[other]
    for name, matrix in cosines(other, layer, scores[f"E_layers{layer}_mean"][key]).items():
        row = ev.text_rows(model, [ev.bert_score_text(model, texts[name]["hypothesis"])])[0][0][0]
        tokens = [model.tokenizer.decode([token]) for token in row[1:-1]]
        close(metric(matrix), scores[f"E_layers{layer}_mean"][key][name])
        close(
            al._aggregate_alignment(al._nearest_cosines(matrix), "sum"),
            pytest.approx(scores[f"E_layers{layer}_sum"][key][name], rel=1e-6),
        )
        for agg in ("mean", "sum"):
            assert al._aggregate_alignment(al._nearest_cosines(matrix), agg, tokens, STOP) == pytest.approx(
                scores[f"E_layers{layer}_{agg}_nostop"][key][name], abs=TOL, rel=1e-6
            )


def test_relevance_of_the_embedding_aligner(oracle, texts, models, cosines):
    scores = oracle("metrics/ctc.json")["scores"]
    want = scores["E_layers2_relevance"]
    ref, src = (cosines(other, 2, want) for other in ("reference", "source"))
    for name, expected in want.items():
        if isinstance(expected, dict):  # An empty summary is an empty context: upstream fails
            with pytest.raises(Undefined):
                al.ctc_embedding_relevance(src[name], ref[name])
        else:
            close(al.ctc_embedding_relevance(src[name], ref[name]), expected)
            close(
                al.ctc_embedding_relevance(src[name], [ref[name], src[name]]),
                (expected + al.ctc_embedding_relevance(src[name], src[name])) / 2,
            )  # Several references: the mean
    assert (
        scores["E_layers2_edge"] == {"empty_context": {"error": "IndexError"}, "empty_input": 0.0}
        and al.ctc_embedding(src["empty_hyp"]) == 0
    )


def test_the_word_aligner_is_that_of_ctc(oracle, texts, models):
    ctc, model, head = (
        oracle("metrics/ctc.json"),
        models("tiny_roberta"),
        oracles() / "metrics/models/heads/ctc_disc_classifier.safetensors",
    )
    for key, other in (("hyp_given_source", "source"), ("hyp_given_ref", "reference")):
        want = ctc["scores"]["D_mean"][key]
        logits, _ = hd.ctc_word_logits(
            model, head, [(texts[name]["hypothesis"], texts[name][other]) for name in want]
        )
        for name, word_logits in zip(want, logits):
            if name == "lines":
                assert want[name] is None and 0 < al.ctc(word_logits) < 1  # A line break: no number upstream
            elif name == "empty_hyp":
                with pytest.raises(Undefined, match="no word"):
                    al.ctc(word_logits)
            else:
                close(al.ctc(word_logits), want[name])
                assert al._aggregate_alignment(al._kept_probabilities(word_logits), "sum") == pytest.approx(
                    ctc["scores"]["D_sum"][key][name], rel=1e-6
                )
                words = hd.ctc_text(texts[name]["hypothesis"], lines=False).split()
                for agg in ("mean", "sum"):
                    if len(words) == len(word_logits):
                        assert al._aggregate_alignment(
                            al._kept_probabilities(word_logits), agg, words, STOP
                        ) == pytest.approx(ctc["scores"][f"D_{agg}_nostop"][key][name], abs=TOL, rel=1e-6)
    sentences = [text["text"] for text in oracle("metrics/sentence_splits.json")["items"]]
    quotes = {
        k: next(text for text in sentences if text.startswith(beginning))
        for k, beginning in (("source", "Curly"), ("hypothesis", "Prices rose"))
    }  # An item that triples.json does not list
    for k in ("D_harwich", "D_quotes", "D_moon"):
        detail, text = ctc["detail"][k], texts[k[2:]] if k[2:] in texts else quotes
        (word_logits,) = hd.ctc_word_logits(model, head, [(text["hypothesis"], text[detail["context"]])])[0]
        close(al._kept_probabilities(word_logits), np.array(detail["keep_probability"]))
        assert hd.ctc_text(text["hypothesis"]).split() == detail["words"]


def test_the_regression_aligner_is_that_of_ctc_but_for_an_empty_summary(oracle, texts, models):
    model = models("tiny_bert_regression")
    for key, other in (("hyp_given_source", "source"), ("hyp_given_ref", "reference")):
        want = oracle("metrics/ctc.json")["scores"]["R"][key]
        got, _ = ev.regression_values(
            model, [(texts[name][other], texts[name]["hypothesis"]) for name in want], 512, "longest"
        )
        for name, value in zip(want, got):
            if name != "empty_hyp":
                close(al.ctc_regression(value), want[name])
        alone = ev.encode_rows(
            model,
            ev.text_rows(model, [texts["empty_hyp"][other]])[0],
            lambda model, text: model(**text).logits,
        )[0][0]  # As strings: the tokenizer drops the empty one
        close(alone, want["empty_hyp"])
        assert abs(got[list(want).index("empty_hyp")] - alone) > 0.01


# Embeddings
def test_an_encoder_saved_by_sentence_transformers_6_gives_the_same_vectors(oracle, texts, tmp_path):
    "Its configuration names the pooling, and its modules have other paths"
    oracle("metrics/embedding_correlation.json")
    old, new = oracles() / "metrics/models/tiny_sbert", tmp_path / "tiny_sbert"
    shutil.copytree(old, new)
    pooling = dict(embedding_dimension=32, pooling_mode="mean", include_prompt=True)
    (new / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    modules = json.loads((new / "modules.json").read_text())
    for module, where in zip(modules, ("base.modules.transformer", "sentence_transformer.modules.pooling")):
        module["type"] = f"sentence_transformers.{where}.{module['type'].rpartition('.')[2]}"
    (new / "modules.json").write_text(json.dumps(modules))
    limit = json.loads((new / "sentence_bert_config.json").read_text())["max_seq_length"]
    (new / "sentence_bert_config.json").write_text(json.dumps(dict(transformer_task="feature-extraction")))
    tokens = json.loads((new / "tokenizer_config.json").read_text()) | dict(model_max_length=limit)
    (new / "tokenizer_config.json").write_text(json.dumps(tokens))
    some = [texts[name]["source"] for name in ("harwich", "moon", "copy_long")]
    want, want_cut = ev.sentence_embeddings(ev.sentence_encoder(old), some)
    got, got_cut = ev.sentence_embeddings(ev.sentence_encoder(new), some)
    assert np.array_equal(got, want) and got_cut.tolist() == want_cut.tolist()
    (new / "1_Pooling" / "config.json").write_text(json.dumps(pooling | dict(pooling_mode=["mean", "cls"])))
    with pytest.raises(ValueError, match="pooling mean, cls is not known"):
        ev.sentence_encoder(new)


def test_embeddings_and_their_correlations_are_those_of_the_release(oracle, texts, short):
    want = oracle("metrics/embedding_correlation.json")
    encoder = ev.sentence_encoder(oracles() / "metrics/models/tiny_sbert")
    of = {k: short if k.endswith("lexical") else texts for k in want["scores"]}
    unique = list(
        dict.fromkeys(
            of[k][i][metric]
            for k, scores in want["scores"].items()
            for i in scores
            for metric in ("hypothesis", "reference")
        )
    )
    embeddings, cut = ev.sentence_embeddings(encoder, unique)
    embeddings = dict(zip(unique, embeddings))
    assert encoder.window == 128 and cut.any()
    for i, x in want["embeddings"].items():
        for k, y in x.items():
            np.testing.assert_allclose(embeddings[texts[i][k]], y, atol=1e-5, rtol=0)
    for key, scores in want["scores"].items():
        metric = al.embedding_spearman if key.startswith("spearman") else al.embedding_kendall
        for i, y in scores.items():
            close(metric(embeddings[of[key][i]["hypothesis"]], embeddings[of[key][i]["reference"]]), y)
    tie = want["tie_example"]
    close(
        (al.embedding_spearman(tie["x"], tie["y"]), al.embedding_kendall(tie["x"], tie["y"])),
        (tie["spearman"], tie["kendall_tau_b"]),
    )
    with pytest.raises(Undefined, match="no ranks"):
        al.embedding_kendall(tie["x"], [1.0] * 8)


# What must not matter
def test_batches_and_order_do_not_matter(texts, models):
    model = models("tiny_roberta")
    pairs = [
        (texts[i]["hypothesis"], texts[i]["reference"])
        for i in ("harwich", "moon", "tiny", "lines", "empty_hyp")
    ]
    one, _ = ev.token_cosines(model, pairs, 2)
    for other in (
        ev.token_cosines(model, pairs, 2, batch_tokens=1)[0],
        ev.token_cosines(model, pairs[::-1], 2)[0][::-1],
        ev.token_cosines(model, pairs, 2, items=2)[0],
    ):
        for once, again in zip(one, other):
            np.testing.assert_allclose(once, again, atol=2e-6, rtol=0)


def test_a_text_is_closest_to_itself(models):
    matrices, _ = ev.token_cosines(
        models("tiny_roberta"),
        [
            ("The fire was put out.", "The fire was put out."),
            ("out hall put rain dogs", "The fire was put out."),
        ],
        2,
    )
    for metric in (al.bertscore_f1, al.bertscore_precision, al.bertscore_recall, al.ctc_he2024):
        assert abs(metric(matrices[0]) - 1) < 1e-6 and metric(matrices[1]) < 0.999


@given(arrays(float, (5, 4), elements=st.floats(0, 1)), st.floats(0, 0.5))
def test_closer_tokens_are_never_worse(matrix, more):
    for metric in (
        al.bertscore_f1,
        al.bertscore_precision,
        al.bertscore_recall,
        al.ctc_he2024,
        al.ctc_embedding,
    ):
        assert metric(matrix + more) >= metric(matrix) - 1e-12


def test_every_entry_is_complete():
    for n, entry in reg.items():
        if entry.fn.__module__ == al.__name__:
            assert all((entry.formula, entry.pitfall, entry.unit, entry.cite, entry.dim)), n


def test_the_layer_belongs_to_the_checkpoint_wherever_it_lies():
    assert [
        al.bertscore_layer(model)
        for model in (
            "microsoft/deberta-xlarge-mnli",
            "/models/deberta-xlarge-mnli/",
            "roberta-large",
            "bert-base-multilingual-cased",
            "tiny-encoder",
        )
    ] == [40, 40, 17, 9, None]
