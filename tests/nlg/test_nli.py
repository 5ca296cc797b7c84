"""NLI metrics: what peers compute on a tiny network, where they fail, and what must not matter."""

# ruff: noqa: F811

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.helpers.nli import (
    MNLI,
    nli_model,  # noqa: F401
    triples,  # noqa: F401
)
from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.models import classifiers as ev
from uetrust.nlg import nli

TOL = 2e-5
KINDS = [
    "sentence",
    "document",
    "paragraph",
    "2sents",
    "mixed",
    "paragraph-sentence",
    "sentence-document",
    "document-sentence",
    "2sents-sentence",
]


@pytest.fixture(scope="module")
def grids(oracle, triples, nli_model):
    """Logits of every granularity, (kind, parts of the source at most) -> item -> [S,H,3]; one pass reads
    each pair once"""
    ids = list(oracle("metrics/summac.json")["zs"]["zs_sentence_max_mean"])
    requests = [(k, 100) for k in KINDS] + [("sentence", 5)]
    logits = iter(
        ev.nli_grids(
            nli_model,
            [
                nli.summac_grid(triples[i]["source"], triples[i]["hypothesis"], kind, most)
                for kind, most in requests
                for i in ids
            ],
        )[0]
    )
    seen = {settings: {i: next(logits) for i in ids} for settings in requests}
    return lambda kind, most=100: seen[kind, most]


def upstream(logits):
    "What SummaC does with nothing to compare: one zero for each class"
    return nli.nli_probabilities(logits) if logits.size else np.zeros((1, 1, 3))


# Whole texts
@pytest.mark.parametrize(
    "key,premise,names",
    [
        ("vitaminc_label_order_ref_premise", "reference", None),
        ("deberta_label_order_ref_premise", "reference", MNLI),
        ("vitaminc_label_order_source_premise", "source", None),
    ],
)
def test_whole_text_nli_is_that_of_he_et_al(oracle, triples, nli_model, key, premise, names):
    want = oracle("metrics/he_summac_nli.json")["scores"][key]
    logits, _ = ev.nli_pairs(
        nli_model, [(triples[i][premise], triples[i]["hypothesis"]) for i in want], names=names
    )
    assert [nli.summac_he2024(triple_logits) for triple_logits in logits] == pytest.approx(
        list(want.values()), abs=TOL
    )


def test_class_probabilities_and_truncation_are_those_of_the_release(oracle, triples, nli_model):
    want = oracle("metrics/he_summac_nli.json")["class_probabilities_truncation_512"]
    for i, premise in enumerate(("source", "reference")):
        pairs = [(triples[k][premise], triples[k]["hypothesis"]) for k in want]
        logits, over = ev.nli_pairs(nli_model, pairs)
        assert nli.nli_probabilities(logits)[:, [2, 0, 1]] == pytest.approx(
            np.array([expected[f"{premise}_premise"] for expected in want.values()]), abs=TOL
        )
        assert [len(row[0]) for row in ev.pair_rows(nli_model, pairs)[0]] == [
            expected["n_tokens"][i] for expected in want.values()
        ]
        assert [bool(tokens) for tokens in over] == [
            len(nli_model.tokenizer([first], [second], verbose=False)["input_ids"][0]) > 512
            for first, second in pairs
        ] and over.any()


# SummaC-ZS
SETTINGS = {
    f"zs_sentence_{over_source}_{over_summary}": dict(op1=over_source, op2=over_summary)
    for over_source in nli.SUMMAC_AGGREGATIONS
    for over_summary in nli.SUMMAC_AGGREGATIONS
} | dict(
    zs_sentence_default_ent_minus_con={},
    zs_sentence_ent_only=dict(contradiction=False),
    zs_sentence_con_only=dict(entailment=False),
)


@pytest.mark.parametrize("key", SETTINGS)
def test_zs_is_that_of_summac_for_every_aggregation(oracle, grids, key):
    want = oracle("metrics/summac.json")["zs"][key]
    assert [
        nli._summac_zs_value(upstream(z), **SETTINGS[key]) for z in grids("sentence").values()
    ] == pytest.approx(list(want.values()), abs=TOL)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_zs_and_shapes_are_those_of_summac_for_every_granularity(oracle, grids, kind):
    zs = oracle("metrics/summac.json")["zs"]
    want, shapes = zs[f"zs_{kind}"], zs[f"zs_{kind}_image_shapes"]
    got = grids(kind)
    assert [nli._summac_zs_value(upstream(z)) for z in got.values()] == pytest.approx(
        list(want.values()), abs=TOL
    )
    assert [[3, *upstream(z).shape[:2]] for z in got.values()] == [shapes[i] for i in want]


def test_other_settings_of_summac(
    oracle, grids
):  # Read as the other checkpoint, class 0 is contradiction, which this one calls entailment
    zs = oracle("metrics/summac.json")["zs"]
    for key, logits in (
        ("zs_sentence_mnli_label_order", {i: grid[..., [2, 0, 1]] for i, grid in grids("sentence").items()}),
        ("zs_sentence_max_doc_sents_5", grids("sentence", 5)),
        ("zs_default_granularity_paragraph", grids("paragraph")),
    ):
        assert {i: nli._summac_zs_value(upstream(grid)) for i, grid in logits.items()} == pytest.approx(
            zs[key], abs=TOL
        )


@pytest.mark.parametrize("kind", ["sentence", "document"])
def test_images_are_those_of_summac(oracle, grids, kind):
    want = oracle("metrics/summac.json")[f"images_{kind}"]
    for i, logits in grids(kind).items():
        image, expected = np.moveaxis(upstream(logits)[..., [2, 0, 1]], -1, 0), want[i]
        if isinstance(expected, list):
            np.testing.assert_allclose(image, expected, atol=TOL, rtol=0)
        else:  # Too large to be recorded whole
            assert list(image.shape) == expected["shape"] and (
                image[0].sum(),
                image[1].sum(),
            ) == pytest.approx(
                (expected["entailment_sum"], expected["contradiction_sum"]), abs=image[0].size * 1e-6
            )
            np.testing.assert_allclose(
                image[:2].max(1),
                (expected["column_max_entailment"], expected["column_max_contradiction"]),
                atol=TOL,
                rtol=0,
            )


def test_the_registered_scores_are_those_and_nothing_to_compare_is_missing(oracle, grids):
    zs, conv = (oracle("metrics/summac.json")[k] for k in ("zs", "conv"))
    for metric, kind, want in (
        (nli.summac_zs, "sentence", zs["zs_sentence_default_ent_minus_con"]),
        (nli.summac_zs_entailment, "sentence", zs["zs_sentence_ent_only"]),
        (nli.summac_zs_paragraph, "paragraph", zs["zs_default_granularity_paragraph"]),
        (nli.summac_conv, "sentence", conv["released_mean"]["scores"]),
    ):
        for i, logits in grids(kind).items():
            if logits.size:
                assert metric(logits) == pytest.approx(want[i], abs=TOL)
            else:
                with pytest.raises(Undefined, match="nothing to compare"):
                    metric(logits)
        assert {i for i, logits in grids("sentence").items() if not logits.size} == {"tiny", "empty_hyp"}


def test_parts_are_those_of_summac(oracle):
    for i in oracle("metrics/sentence_splits.json")["items"]:
        for kind, want in i.get("summac", {}).items():
            assert nli._summac_parts(i["text"], kind) == want


# SummaC-Conv
@pytest.mark.parametrize("head", ["released", "random"])
@pytest.mark.parametrize("agg", ["mean", "min", "max", "all"])
def test_conv_is_that_of_summac(oracle, grids, head, agg):
    want = oracle("metrics/summac.json")["conv"][f"{head}_{agg}"]
    weights = (
        nli.SUMMAC_CONV_WEIGHTS
        if head == "released"
        else nli._load_summac_conv_head(oracles() / "metrics/models/heads/summac_conv_random.safetensors")
    )
    for i, logits in grids("sentence").items():
        assert nli._summac_conv_logits(upstream(logits), weights, agg) == pytest.approx(
            want["logits"][i], abs=TOL
        )
        if logits.size:
            assert nli.summac_conv(logits, weights, agg) == pytest.approx(want["scores"][i], abs=TOL)


@pytest.mark.parametrize(
    "key,edges,labels",
    [("even50_mean", nli.SUMMAC_CONV_EVEN_BINS, "e"), ("percentile_ecn_mean", nli.SUMMAC_CONV_BINS, "ecn")],
)
def test_other_bins_and_labels(oracle, grids, key, edges, labels):
    want = oracle("metrics/summac.json")["conv"][key]
    head = {k: np.array(weights) for k, weights in want["weights"].items()}
    for i, logits in grids("sentence").items():
        assert nli._summac_conv_logits(upstream(logits), head, "mean", edges, labels) == pytest.approx(
            want["logits"][i], abs=TOL
        )


def test_bins_and_histograms_are_those_of_summac(oracle, grids):
    conv = oracle("metrics/summac.json")["conv"]
    assert nli.SUMMAC_CONV_BINS.tolist() == conv[
        "bins_percentile"
    ] and nli.SUMMAC_CONV_EVEN_BINS == pytest.approx(np.array(conv["even50_mean"]["bins"]), abs=1e-15)
    for i, logits in grids("sentence").items():
        histograms, want = nli.nli_histograms(upstream(logits)), np.array(conv["histograms_percentile_e"][i])
        assert (histograms == want[: len(histograms)]).all() and not want[len(histograms) :].any()
        if i not in conv["percentile_ecn_mean"]["histograms"]:
            continue
        histograms, want = (
            nli.nli_histograms(upstream(logits), labels="ecn"),
            np.array(conv["percentile_ecn_mean"]["histograms"][i]),
        )
        assert (histograms == want[: len(histograms)]).all() and not want[len(histograms) :].any()


def test_the_shipped_head_is_the_released_one(oracle):
    want = oracle("metrics/summac.json")["conv"]["released_weights"]
    for k, weights in nli.SUMMAC_CONV_WEIGHTS.items():
        np.testing.assert_allclose(weights, want[k], rtol=1e-6)
    assert sum(weights.size for weights in nli.SUMMAC_CONV_WEIGHTS.values()) == 32


def test_a_file_that_is_no_head_is_named(oracle):
    oracle("metrics/triples.json")
    with pytest.raises(ValueError, match="mlp.weight.* is missing"):
        nli._load_summac_conv_head(oracles() / "metrics/models/heads/ctc_disc_classifier.safetensors")


# What must not matter
def test_batches_order_and_repetitions_do_not_matter(triples, nli_model):
    ids = [i for i in triples if i not in ("expedition_long", "copy_long")]
    pairs = [nli.summac_grid(triples[i]["source"], triples[i]["hypothesis"]) for i in ids]
    one, _ = ev.nli_grids(nli_model, pairs)
    for other in (
        ev.nli_grids(nli_model, pairs, batch_tokens=1)[0],
        ev.nli_grids(nli_model, pairs[::-1])[0][::-1],
        [ev.nli_grids(nli_model, [pair])[0][0] for pair in pairs],
    ):
        for once, again in zip(one, other):
            np.testing.assert_allclose(
                nli.nli_probabilities(once), nli.nli_probabilities(again), atol=4e-6, rtol=0
            )  # The weights of this network are large
            if once.size:
                assert nli.summac_zs(once) == pytest.approx(nli.summac_zs(again), abs=2e-6)


@given(arrays(float, (4, 3, 3), elements=st.floats(-5, 5)), st.floats(0, 3))
def test_more_entailment_is_never_worse(logits, more):
    better = logits + [0, 0, more]
    for metric in (nli.summac_zs, nli.summac_zs_entailment, nli.summac_zs_paragraph):
        assert metric(better) >= metric(logits) - 1e-12
    for metric in (nli.mnli_doc, nli.anli, nli.summac_he2024):
        assert metric(better[0, 0]) >= metric(logits[0, 0]) - 1e-12


def test_a_long_neutral_source_saturates_conv():
    far = np.log([[[0.1, 0.7, 0.2]]])
    short, long = (nli.summac_conv(np.tile(far, (k, 1, 1))) for k in (1, 100))
    assert short < 0.35 and long > 0.99 and nli.summac_zs(np.tile(far, (100, 1, 1))) == pytest.approx(0.1)


def test_every_entry_is_complete():
    for n in (
        "mnli_doc",
        "anli",
        "true_nli",
        "summac_he2024",
        "summac_zs",
        "summac_zs_entailment",
        "summac_zs_paragraph",
        "summac_conv",
    ):
        assert all((reg[n].formula, reg[n].pitfall, reg[n].unit, reg[n].cite, reg[n].dim))
