"""Costs of a profile: every checkpoint of the settings has a shape."""

# ruff: noqa: F811

import json
import struct
from math import prod

import pytest

from tests.helpers.paths import ROOT
from tests.helpers.plan import offline  # noqa: F401
from uetrust.report import plan as p
from uetrust.scoring.costs import TextLengths, _ModelShape, checkpoint_shape, read_cost, stored_bytes


def test_every_checkpoint_of_settings_has_a_shape():
    for profile in ("paper", "ice", "fflm", "narcissism", "threshold", "people-read"):
        names = [need.name for need in p.run_plan(profile).needs if need.kind == "checkpoint"]
        assert [name for name in names if checkpoint_shape(name) is None] == []


MODELS = ROOT / "data" / "models"
LAYERS = {  # Kind -> how the names of matrices begin in layers that read, and in layers that write
    "tiny-bart": ("model.encoder.layers.", "model.decoder.layers."),
    "tiny-t5": ("encoder.block.", "decoder.block."),
    "tiny-llama": ("no encoder", "model.layers."),
    "tiny-nli": ("bert.encoder.layer.", "no decoder"),
    "tiny-encoder": ("roberta.encoder.layer.", "no decoder"),
}


def matrices(name):
    "Name of each matrix in a file of weights -> how many numbers it holds, from the head of the file"
    raw = (MODELS / name / "model.safetensors").read_bytes()
    head = json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])
    shapes = {key: held["shape"] for key, held in head.items() if key != "__metadata__"}
    return {key: prod(shape) for key, shape in shapes.items() if len(shape) == 2}


@pytest.mark.parametrize("name", LAYERS)
def test_a_token_meets_every_matrix_that_the_file_of_the_model_holds(name):
    shape, held = checkpoint_shape(str(MODELS / name)), matrices(name)
    held = {key: n for key, n in held.items() if "relative_attention_bias" not in key}  # A table of T5
    encoder, decoder = (sum(n for key, n in held.items() if key.startswith(at)) for at in LAYERS[name])
    assert (shape.encoder_weights, shape.decoder_weights) == (encoder, decoder)
    writes = [n for key, n in held.items() if key.endswith(("shared.weight", "embed_tokens.weight"))]
    assert shape.output_weights == (writes[0] if decoder else 0)  # As many as the words that it reads have


def test_operations_of_reading_by_hand():
    "Two for each weight and token, four for each layer, number of the width, and pair of tokens"
    shape = _ModelShape("causal", 0, 1, 2, 4, 1, 1, 5, 2)
    attention, feed_forward, words = 4 * 2 * 2, 2 * 2 * 4, 5 * 2
    prompt = 2 * (attention + feed_forward) * 3 + 4 * 2 * 3 * 3 / 2  # A token sees half of them
    texts = 2 * (attention + feed_forward) * 8 + 4 * 2 * 8 * (3 + 1)  # Four of two tokens, after the prompt
    assert read_cost(shape, 3, 2, 4).flops == prompt + texts + 2 * words * 8
    encoder = shape._replace(kind="encoder", encoder=1, decoder=0)
    once = 2 * (attention + feed_forward) * 5 + 4 * 2 * 5 * 5
    assert read_cost(encoder, 3, 2, 4).flops == 4 * once


@pytest.mark.parametrize(
    "stage, size",
    [
        ("hidden", 2 * 128),  # Means of the encoder and of the decoder
        ("sample_hidden", 5 * 128),
        ("training", 2 * 128),
        ("entailments", 3 * 6 * 6),  # Three classes of each pair of six texts
        ("sentences", 3 * 5 * 2),  # Of each drawn text and each of the two sentences of the greedy one
        ("embeddings", 6 * 128),
        ("output_length", 0),
    ],
)
def test_what_is_kept_of_a_source_are_numbers_of_4_bytes(stage, size):
    shape, encoder = (checkpoint_shape(str(MODELS / name)) for name in ("tiny-bart", "tiny-encoder"))
    lengths = TextLengths(source=200, reference=50, summary=54)  # Two sentences of 27 tokens
    assert stored_bytes([stage], shape, lengths, 5, encoder) == 4 * size
    assert stored_bytes([stage], shape, lengths._replace(summary=9), 5, encoder) == (
        4 * 3 * 5 if stage == "sentences" else 4 * size
    )
