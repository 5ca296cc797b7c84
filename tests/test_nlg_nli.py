"""NLI metrics: what peers compute on a tiny network, where they fail, and what must not matter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from uetrust.core.checks import Undefined
from uetrust.core.registry import reg
from uetrust.core.settings import oracles
from uetrust.models import classifiers as ev
from uetrust.models import encode
from uetrust.models.load import load
from uetrust.nlg import nli

MNLI = {
    0: "contradiction",
    1: "neutral",
    2: "entailment",
}  # The order of another checkpoint, put on the tiny one
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
def triples(oracle):
    return {t["id"]: t for t in oracle("metrics/triples.json")["triples"]}


@pytest.fixture(scope="module")
def split(oracle):
    known = {i["text"]: i["punkt"] for i in oracle("metrics/sentence_splits.json")["items"]}
    return known.__getitem__


@pytest.fixture(scope="module")
def m(oracle):
    oracle("metrics/triples.json")
    return load(oracles() / "metrics/models/tiny_bert_nli")


@pytest.fixture(scope="module")
def grids(oracle, triples, split, m):
    "Logits of every granularity, (kind, parts of the source at most) -> item -> [S,H,3]; one pass reads each pair once"
    ids = list(oracle("metrics/summac.json")["zs"]["zs_sentence_max_mean"])
    asked = [(k, 100) for k in KINDS] + [("sentence", 5)]
    z = iter(
        ev.nli_grids(
            m,
            [
                nli.grid(triples[i]["source"], triples[i]["hypothesis"], kind, split, most)
                for kind, most in asked
                for i in ids
            ],
        )[0]
    )
    seen = {a: {i: next(z) for i in ids} for a in asked}
    return lambda kind, most=100: seen[kind, most]


def upstream(z):
    "What SummaC does with nothing to compare: one zero for each class"
    return nli.probabilities(z) if z.size else np.zeros((1, 1, 3))


# Whole texts
@pytest.mark.parametrize(
    "key,premise,names",
    [
        ("vitaminc_label_order_ref_premise", "reference", None),
        ("deberta_label_order_ref_premise", "reference", MNLI),
        ("vitaminc_label_order_source_premise", "source", None),
    ],
)
def test_whole_text_nli_is_that_of_he_et_al(oracle, triples, m, key, premise, names):
    want = oracle("metrics/he_summac_nli.json")["scores"][key]
    z, _ = ev.nli_pairs(m, [(triples[i][premise], triples[i]["hypothesis"]) for i in want], names=names)
    assert [nli.summac_he2024(x) for x in z] == pytest.approx(list(want.values()), abs=TOL)


def test_class_probabilities_and_truncation_are_those_of_the_release(oracle, triples, m):
    want = oracle("metrics/he_summac_nli.json")["class_probabilities_truncation_512"]
    for i, premise in enumerate(("source", "reference")):
        pairs = [(triples[k][premise], triples[k]["hypothesis"]) for k in want]
        z, over = ev.nli_pairs(m, pairs)
        assert nli.probabilities(z)[:, [2, 0, 1]] == pytest.approx(
            np.array([w[f"{premise}_premise"] for w in want.values()]), abs=TOL
        )
        assert [len(r[0]) for r in ev.pair_rows(m, pairs)[0]] == [w["n_tokens"][i] for w in want.values()]
        assert [bool(o) for o in over] == [
            len(m.tokenizer([a], [b], verbose=False)["input_ids"][0]) > 512 for a, b in pairs
        ] and over.any()


# SummaC-ZS
SETTINGS = {f"zs_sentence_{a}_{b}": dict(op1=a, op2=b) for a in nli.OPS for b in nli.OPS} | dict(
    zs_sentence_default_ent_minus_con={},
    zs_sentence_ent_only=dict(contradiction=False),
    zs_sentence_con_only=dict(entailment=False),
)


@pytest.mark.parametrize("key", SETTINGS)
def test_zs_is_that_of_summac_for_every_aggregation(oracle, grids, key):
    want = oracle("metrics/summac.json")["zs"][key]
    assert [nli.zs(upstream(z), **SETTINGS[key]) for z in grids("sentence").values()] == pytest.approx(
        list(want.values()), abs=TOL
    )


@pytest.mark.parametrize("kind", KINDS[1:])
def test_zs_and_shapes_are_those_of_summac_for_every_granularity(oracle, grids, kind):
    zs = oracle("metrics/summac.json")["zs"]
    want, shapes = zs[f"zs_{kind}"], zs[f"zs_{kind}_image_shapes"]
    got = grids(kind)
    assert [nli.zs(upstream(z)) for z in got.values()] == pytest.approx(list(want.values()), abs=TOL)
    assert [[3, *upstream(z).shape[:2]] for z in got.values()] == [shapes[i] for i in want]


def test_other_settings_of_summac(
    oracle, grids
):  # Read as the other checkpoint, class 0 is contradiction, which this one calls entailment
    zs = oracle("metrics/summac.json")["zs"]
    for key, z in (
        ("zs_sentence_mnli_label_order", {i: x[..., [2, 0, 1]] for i, x in grids("sentence").items()}),
        ("zs_sentence_max_doc_sents_5", grids("sentence", 5)),
        ("zs_default_granularity_paragraph", grids("paragraph")),
    ):
        assert {i: nli.zs(upstream(x)) for i, x in z.items()} == pytest.approx(zs[key], abs=TOL)


@pytest.mark.parametrize("kind", ["sentence", "document"])
def test_images_are_those_of_summac(oracle, grids, kind):
    want = oracle("metrics/summac.json")[f"images_{kind}"]
    for i, z in grids(kind).items():
        p, w = np.moveaxis(upstream(z)[..., [2, 0, 1]], -1, 0), want[i]
        if isinstance(w, list):
            np.testing.assert_allclose(p, w, atol=TOL, rtol=0)
        else:  # Too large to be recorded whole
            assert list(p.shape) == w["shape"] and (p[0].sum(), p[1].sum()) == pytest.approx(
                (w["entailment_sum"], w["contradiction_sum"]), abs=p[0].size * 1e-6
            )
            np.testing.assert_allclose(
                p[:2].max(1), (w["column_max_entailment"], w["column_max_contradiction"]), atol=TOL, rtol=0
            )


def test_the_registered_scores_are_those_and_nothing_to_compare_is_missing(oracle, grids):
    zs, conv = (oracle("metrics/summac.json")[k] for k in ("zs", "conv"))
    for f, kind, want in (
        (nli.summac_zs, "sentence", zs["zs_sentence_default_ent_minus_con"]),
        (nli.summac_zs_entailment, "sentence", zs["zs_sentence_ent_only"]),
        (nli.summac_zs_paragraph, "paragraph", zs["zs_default_granularity_paragraph"]),
        (nli.summac_conv, "sentence", conv["released_mean"]["scores"]),
    ):
        for i, z in grids(kind).items():
            if z.size:
                assert f(z) == pytest.approx(want[i], abs=TOL)
            else:
                with pytest.raises(Undefined, match="nothing to compare"):
                    f(z)
        assert {i for i, z in grids("sentence").items() if not z.size} == {"tiny", "empty_hyp"}


def test_parts_are_those_of_summac(oracle, split):
    for i in oracle("metrics/sentence_splits.json")["items"]:
        for kind, want in i.get("summac", {}).items():
            assert nli.parts(i["text"], kind, split) == want


def test_pairs_of_sentences_are_cut_to_500_tokens_longest_first(oracle, triples, m):
    want = oracle("metrics/summac.json")["truncation"]
    long = triples["copy_long"]
    (ids, segments), over = (x[0] for x in ev.pair_rows(m, [(long["source"], long["hypothesis"])], 500))
    assert (
        len(ids) == want["max_length"]
        and (segments.count(0), segments.count(1))
        == (want["copy_long_first_segment_tokens"], want["copy_long_second_segment_tokens"])
        and over > 0
    )
    assert ev.nli_grids(m, [([long["source"]], [long["hypothesis"]]), (["A."], ["B."])])[1].tolist() == [1, 0]


# SummaC-Conv
@pytest.mark.parametrize("head", ["released", "random"])
@pytest.mark.parametrize("agg", ["mean", "min", "max", "all"])
def test_conv_is_that_of_summac(oracle, grids, head, agg):
    want = oracle("metrics/summac.json")["conv"][f"{head}_{agg}"]
    w = (
        nli.RELEASED
        if head == "released"
        else nli.conv_head(oracles() / "metrics/models/heads/summac_conv_random.safetensors")
    )
    for i, z in grids("sentence").items():
        assert nli.conv(upstream(z), w, agg) == pytest.approx(want["logits"][i], abs=TOL)
        if z.size:
            assert nli.summac_conv(z, w, agg) == pytest.approx(want["scores"][i], abs=TOL)


@pytest.mark.parametrize(
    "key,edges,labels", [("even50_mean", nli.EVEN, "e"), ("percentile_ecn_mean", nli.EDGES, "ecn")]
)
def test_other_bins_and_labels(oracle, grids, key, edges, labels):
    want = oracle("metrics/summac.json")["conv"][key]
    head = {k: np.array(v) for k, v in want["weights"].items()}
    for i, z in grids("sentence").items():
        assert nli.conv(upstream(z), head, "mean", edges, labels) == pytest.approx(want["logits"][i], abs=TOL)


def test_bins_and_histograms_are_those_of_summac(oracle, grids):
    conv = oracle("metrics/summac.json")["conv"]
    assert nli.EDGES.tolist() == conv["bins_percentile"] and nli.EVEN == pytest.approx(
        np.array(conv["even50_mean"]["bins"]), abs=1e-15
    )
    for i, z in grids("sentence").items():
        h, want = nli.histograms(upstream(z)), np.array(conv["histograms_percentile_e"][i])
        assert (h == want[: len(h)]).all() and not want[len(h) :].any()
        if i not in conv["percentile_ecn_mean"]["histograms"]:
            continue
        h, want = (
            nli.histograms(upstream(z), labels="ecn"),
            np.array(conv["percentile_ecn_mean"]["histograms"][i]),
        )
        assert (h == want[: len(h)]).all() and not want[len(h) :].any()


def test_the_shipped_head_is_the_released_one(oracle):
    want = oracle("metrics/summac.json")["conv"]["released_weights"]
    for k, v in nli.RELEASED.items():
        np.testing.assert_allclose(v, want[k], rtol=1e-6)
    assert sum(v.size for v in nli.RELEASED.values()) == 32


def test_a_file_that_is_no_head_is_named(oracle):
    oracle("metrics/triples.json")
    with pytest.raises(ValueError, match="lacks .*mlp.weight"):
        nli.conv_head(oracles() / "metrics/models/heads/ctc_disc_classifier.safetensors")


# What must not matter
def test_batches_order_and_repetitions_do_not_matter(triples, split, m):
    ids = [i for i in triples if i not in ("expedition_long", "copy_long")]
    g = [nli.grid(triples[i]["source"], triples[i]["hypothesis"], split=split) for i in ids]
    one, _ = ev.nli_grids(m, g)
    for other in (
        ev.nli_grids(m, g, batch_tokens=1)[0],
        ev.nli_grids(m, g[::-1])[0][::-1],
        [ev.nli_grids(m, [x])[0][0] for x in g],
    ):
        for a, b in zip(one, other):
            np.testing.assert_allclose(
                nli.probabilities(a), nli.probabilities(b), atol=4e-6, rtol=0
            )  # The weights of this network are large
            if a.size:
                assert nli.summac_zs(a) == pytest.approx(nli.summac_zs(b), abs=2e-6)


def test_an_empty_second_text_keeps_its_separator(triples, m):
    "The tokenizer drops it when texts come as strings, and the score changes"
    ref = triples["empty_hyp"]["reference"]
    (row,) = ev.pair_rows(m, [(ref, "")])[0]
    assert (
        row[0][-2:] == (m.tokenizer.sep_token_id,) * 2
        and len(row[0]) == len(m.tokenizer(ref, "")["input_ids"]) + 1
    )
    assert row[0] == tuple(m.tokenizer([ref], [""])["input_ids"][0])
    np.testing.assert_allclose(
        encode.nli(m, [(ref, "")])[0][:, ::-1], ev.nli_pairs(m, [(ref, "")])[0], atol=2e-6, rtol=0
    )


def test_rows_are_those_of_the_tokenizer(triples, m):
    for window in (512, 500, 60, 37):
        for t in triples.values():
            ids, segments = ev.pair_rows(m, [(t["source"], t["hypothesis"])], window)[0][0]
            e = m.tokenizer([t["source"]], [t["hypothesis"]], truncation=True, max_length=window)
            assert ids == tuple(e["input_ids"][0]) and segments == tuple(e["token_type_ids"][0])


@given(
    a=st.integers(0, 40),
    b=st.integers(0, 40),
    room=st.integers(2, 60),
    cut=st.sampled_from(["longest", "pop", "first", "second"]),
)
def test_what_is_kept_fills_the_room(a, b, room, cut):
    na, nb = ev.fit(a, b, room, cut)
    assert 0 <= na <= a and 0 <= nb <= b and na + nb == min(a + b, room)
    if cut == "first" and b < room:
        assert nb == b
    if cut == "second" and a < room:
        assert na == a


@given(a=st.integers(0, 40), b=st.integers(0, 40), room=st.integers(2, 60))
def test_popping_is_popping(a, b, room):
    na, nb = a, b
    while na + nb > room:
        if na > nb:
            na -= 1
        else:
            nb -= 1
    assert ev.fit(a, b, room, "pop") == (na, nb)


def test_class_names_decide_the_order_and_unknown_ones_are_refused():
    assert (
        ev.nli_order(MNLI) == [0, 1, 2]
        and ev.nli_order({0: "ENTAILMENT", 1: "CONTRADICTION", 2: "NEUTRAL"}) == [1, 2, 0]
        and ev.nli_order({0: "SUPPORTS", 1: "REFUTES", 2: "NOT ENOUGH INFO"}) == [1, 2, 0]
    )
    with pytest.raises(ValueError, match="label_0"):
        ev.nli_order({i: f"LABEL_{i}" for i in range(3)})


@given(arrays(float, (4, 3, 3), elements=st.floats(-5, 5)), st.floats(0, 3))
def test_more_entailment_is_never_worse(z, more):
    better = z + [0, 0, more]
    for f in (nli.summac_zs, nli.summac_zs_entailment, nli.summac_zs_paragraph):
        assert f(better) >= f(z) - 1e-12
    for f in (nli.mnli_doc, nli.anli, nli.summac_he2024):
        assert f(better[0, 0]) >= f(z[0, 0]) - 1e-12


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
        assert all((reg[n].formula, reg[n].trap, reg[n].unit, reg[n].cite, reg[n].dim))
