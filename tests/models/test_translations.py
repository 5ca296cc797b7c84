"""COMET, CometKiwi and MetricX: the numbers of the released formulas, computed another way."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from tests.helpers import checkers as made
from tests.helpers.convert import convert
from uetrust.models.load import load_model
from uetrust.models.translations import METRICX_TOKEN, comet_values, metricx_values

ITEMS = [
    ("It rained.", "Es regnete am Montag.", "Rain fell on Monday."),
    ("The council met.", "Der Rat trat zusammen.", "The council met."),
    ("", "Schnee.", "Snow."),
]


@pytest.fixture(scope="module")
def xlm_roberta(tmp_path_factory):
    return made.save(made.xlm_roberta, tmp_path_factory.mktemp("xlm-roberta") / "base")


def simplex(values):
    "Nearest point of the simplex, by a search for the number that is taken off"
    low, high = values.min() - 1, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(values - middle, 0, None).sum() > 1 else (low, middle)
    return np.clip(values - low, 0, None)


def states(model, *texts):
    "States of all layers [L+1, T, D], of one input"
    encoded = model.tokenizer(*texts, return_tensors="pt", truncation=True, max_length=512)
    with torch.inference_mode():
        return np.stack(
            [h[0].numpy() for h in model.model(**encoded, output_hidden_states=True).hidden_states]
        )


def regressed(features, layers):
    for i, layer in enumerate(layers):
        features = layer.weight.detach().numpy() @ (np.tanh(features) if i else features)
        features = features + layer.bias.detach().numpy()
    return features[0]


@pytest.mark.parametrize("transformation", ["softmax", "sparsemax"])
def test_comet_compares_three_vectors(xlm_roberta, tmp_path, transformation):
    base = load_model(xlm_roberta)
    given = made.released_comet(tmp_path / "comet", base.model, "regression_metric", transformation)
    scalars, gamma, layers = given
    convert("comet", tmp_path / "comet", tmp_path / "out", "--base", xlm_roberta)
    exps = np.exp(scalars.numpy())
    weights = gamma * (exps / exps.sum() if transformation == "softmax" else simplex(scalars.numpy()))
    want = []
    for item in ITEMS:
        h, s, r = (np.einsum("l,ltd->td", weights, states(base, text)).mean(0) for text in item)
        want.append(regressed(np.r_[h, r, h * r, abs(h - r), h * s, abs(h - s)], layers))
    model, head = load_model(tmp_path / "out"), tmp_path / "out" / "head.safetensors"
    values, over = comet_values(model, head, ITEMS)
    np.testing.assert_allclose(values, want, atol=2e-5, rtol=0)
    assert not over.any() and np.ptp(values) > 1e-3
    assert (weights == 0).any() == (transformation == "sparsemax")
    with pytest.raises(ValueError, match="with a source and a reference, got a source"):
        comet_values(model, head, [("It rained.", "Es regnete.")])


def test_cometkiwi_reads_the_first_token_of_a_pair(xlm_roberta, tmp_path):
    base = load_model(xlm_roberta)
    scalars, gamma, layers = made.released_comet(
        tmp_path / "kiwi", base.model, "unified_metric", "sparsemax_patch", input_segments="[mt, src]"
    )
    convert("comet", tmp_path / "kiwi", tmp_path / "out", "--base", xlm_roberta)
    weights = (
        gamma * np.exp(scalars.numpy()) / np.exp(scalars.numpy()).sum()
    )  # Its code reads it as a softmax
    pairs = [item[:2] for item in ITEMS]
    want = [regressed(np.einsum("l,ld->d", weights, states(base, *pair)[:, 0]), layers) for pair in pairs]
    model, head = load_model(tmp_path / "out"), tmp_path / "out" / "head.safetensors"
    values, over = comet_values(model, head, pairs)
    np.testing.assert_allclose(values, want, atol=2e-5, rtol=0)
    assert not over.any()
    long = [("It rained.", "Regen fiel. " * n) for n in (60, 400)]
    ids = base.tokenizer(*long[1], verbose=False).input_ids
    cut = torch.tensor([ids[:512]])  # Without the end token
    with torch.inference_mode():
        found = base.model(input_ids=cut, output_hidden_states=True).hidden_states
    want = regressed(np.einsum("l,ld->d", weights, np.stack([h[0, 0].numpy() for h in found])), layers)
    values, over = comet_values(model, head, long)
    assert values[1] == pytest.approx(want, abs=2e-5) and over.tolist() == [0, len(ids) - 512]


def test_texts_are_cut_at_512_tokens(xlm_roberta, tmp_path):
    base, long = load_model(xlm_roberta), "rain fell " * 400
    made.released_comet(tmp_path / "comet", base.model, "regression_metric")
    convert("comet", tmp_path / "comet", tmp_path / "out", "--base", xlm_roberta)
    items = [("It rained.", long, "Rain fell."), ("It rained.", "Es regnete.", "Rain fell.")]
    _, over = comet_values(load_model(tmp_path / "out"), tmp_path / "out" / "head.safetensors", items)
    assert over.tolist() == [len(base.tokenizer(long, verbose=False).input_ids) - 512, 0]


def test_metricx_is_one_logit_of_the_first_step(tmp_path):
    folder = made.save(made.metricx, tmp_path / "metricx")
    model, tokenizer = load_model(folder), AutoTokenizer.from_pretrained(folder)
    texts = ["candidate: It rained. reference: Rain fell.", "candidate: Snow.", "rain " * 60]
    want = []
    for text in texts:  # As in the released code: cut, then the end token is dropped
        ids = torch.tensor([tokenizer(text, max_length=40, truncation=True).input_ids[:-1]])
        with torch.no_grad():
            out = model.model(input_ids=ids, decoder_input_ids=torch.tensor([[0]]), output_hidden_states=True)
            state = out.decoder_hidden_states[-1][0, 0]
            want.append((state @ model.model.lm_head.weight[METRICX_TOKEN]).item())
    values, over = metricx_values(model, texts, 40)
    np.testing.assert_allclose(values, want, atol=2e-5, rtol=0)
    one_by_one, _ = metricx_values(model, texts, 40, batch_tokens=1)
    np.testing.assert_allclose(one_by_one, values, atol=2e-5, rtol=0)
    assert over.tolist() == [0, 0, len(tokenizer(texts[2], verbose=False).input_ids) - 40]
    assert np.ptp(values) > 1e-4
