"""Classifiers: class names decide the order, batches and repeats change nothing."""

# ruff: noqa: F811

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.nli import (
    MNLI,
    nli_model,  # noqa: F401
    triples,  # noqa: F401
)
from tests.helpers.readings import encoder
from uetrust.models import classifiers as ev
from uetrust.models import encode
from uetrust.models.classifiers import entailment_logits, nli_pairs
from uetrust.models.encode import NLI_CLASSES, nli_order


def test_a_text_entails_itself_and_the_model_says_the_rest():
    model, pairs = encoder(), [("w1 w2", "w1 w2"), ("w1", "w2"), (" w3\n", "w3"), ("", " ")]
    logits, cut = entailment_logits(model, pairs)
    likely = torch.softmax(torch.tensor(logits), 1).numpy()
    assert logits.dtype == np.float32 and np.isfinite(logits).all() and cut.tolist() == [0] * 4
    assert likely[[0, 2, 3]].tolist() == [[0, 0, 1]] * 3
    assert np.abs(logits[1] - nli_pairs(model, pairs[1:2])[0][0]).max() < 1e-6
    assert [len(part) for part in entailment_logits(model, [])] == [0, 0]


def test_labels_are_put_in_order_by_name(tmp_path):
    model = encoder()
    logits, _ = nli_pairs(model, [("w1 w2", "w3")])
    inputs = model.tokenizer("w1 w2", "w3", return_tensors="pt")
    with torch.no_grad():
        raw = model.model(**inputs).logits[0].numpy()
    assert np.allclose(logits[0], raw[[0, 2, 1]], atol=1e-6)
    assert NLI_CLASSES == ("contradiction", "neutral", "entailment")
    assert np.allclose(logits, nli_pairs(model, [("w1 w2", "w3")])[0], atol=1e-6)  # One order everywhere
    with pytest.raises(ValueError, match="found label_0, label_1"):
        nli_order({0: "LABEL_0", 1: "LABEL_1"})


def test_batches_and_repeats_change_nothing_but_the_last_bits():
    model = encoder()
    pairs = [(f"w{i} " * (1 + i % 9), f"w{i + 1}") for i in range(20)] * 2
    together, _ = nli_pairs(model, pairs)
    alone, _ = nli_pairs(model, pairs, batch_tokens=1)
    assert np.abs(together - alone).max() < 1e-5 and np.array_equal(together[:20], together[20:])


def test_pairs_of_sentences_are_cut_to_500_tokens_longest_first(oracle, triples, nli_model):
    want = oracle("metrics/summac.json")["truncation"]
    long = triples["copy_long"]
    (ids, segments), over = (
        result[0] for result in ev.pair_rows(nli_model, [(long["source"], long["hypothesis"])], 500)
    )
    assert (
        len(ids) == want["max_length"]
        and (segments.count(0), segments.count(1))
        == (want["copy_long_first_segment_tokens"], want["copy_long_second_segment_tokens"])
        and over > 0
    )
    assert ev.nli_grids(nli_model, [([long["source"]], [long["hypothesis"]]), (["A."], ["B."])])[
        1
    ].tolist() == [1, 0]


def test_an_empty_second_text_keeps_its_separator(triples, nli_model):
    "The tokenizer drops it when texts come as strings, and the score changes"
    ref = triples["empty_hyp"]["reference"]
    (row,) = ev.pair_rows(nli_model, [(ref, "")])[0]
    assert (
        row[0][-2:] == (nli_model.tokenizer.sep_token_id,) * 2
        and len(row[0]) == len(nli_model.tokenizer(ref, "")["input_ids"]) + 1
    )
    assert row[0] == tuple(nli_model.tokenizer([ref], [""])["input_ids"][0])
    inputs = nli_model.tokenizer([ref], [""], return_tensors="pt")
    np.testing.assert_allclose(
        nli_model.model(**inputs)
        .logits.detach()
        .numpy()[:, encode.nli_order(nli_model.model.config.id2label)],
        ev.nli_pairs(nli_model, [(ref, "")])[0],
        atol=2e-6,
        rtol=0,
    )


def test_rows_are_those_of_the_tokenizer(triples, nli_model):
    for window in (512, 500, 60, 37):
        for triple in triples.values():
            ids, segments = ev.pair_rows(nli_model, [(triple["source"], triple["hypothesis"])], window)[0][0]
            encoded = nli_model.tokenizer(
                [triple["source"]], [triple["hypothesis"]], truncation=True, max_length=window
            )
            assert ids == tuple(encoded["input_ids"][0]) and segments == tuple(encoded["token_type_ids"][0])


@given(
    a=st.integers(0, 40),
    b=st.integers(0, 40),
    room=st.integers(2, 60),
    cut=st.sampled_from(["longest", "pop", "first", "second"]),
)
def test_what_is_kept_fills_the_room(a, b, room, cut):
    na, nb = ev._fit_pair(a, b, room, cut)
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
    assert ev._fit_pair(a, b, room, "pop") == (na, nb)


def test_class_names_decide_the_order_and_unknown_ones_are_refused():
    assert (
        ev.nli_order(MNLI) == [0, 1, 2]
        and ev.nli_order({0: "ENTAILMENT", 1: "CONTRADICTION", 2: "NEUTRAL"}) == [1, 2, 0]
        and ev.nli_order({0: "SUPPORTS", 1: "REFUTES", 2: "NOT ENOUGH INFO"}) == [1, 2, 0]
    )
    with pytest.raises(ValueError, match="label_0"):
        ev.nli_order({i: f"LABEL_{i}" for i in range(3)})
