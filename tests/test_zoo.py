"""Architectures of the installed transformers, real classes in small: each reads and writes as transformers
does, or is refused by name before any work. `data/zoo.csv` lists all that were tried."""

import numpy as np
import pandas as pd
import pytest
import torch
from test_generate import tokenizer
from zoo import small_network

from uetrust.core.checks import BadCheckpoint
from uetrust.core.settings import root
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.models.forward import score_tokens
from uetrust.models.load import wrap_model
from uetrust.stats.attention import attention_statistics

PROMPTS = [[5, 9, 11, 30, 7, 44, 21], [8, 33, 12], [17, 6, 50, 49, 13, 40, 20, 19, 18]]
TEXTS = [[9, 30, 31, 7, 1], [40, 12, 3, 3, 9, 8, 6]]
RIGHT = [
    "LlamaForCausalLM",
    "BartForConditionalGeneration",
    "T5ForConditionalGeneration",
    "Gemma3ForCausalLM",
]
REFUSED = {
    "MptForCausalLM": "texts of a batch are not those of each prompt alone",
    "T5GemmaForConditionalGeneration": "a text after a shared prefix is not read as it is alone",
    "MambaForCausalLM": "'MambaOutput' object has no attribute 'past_key_values'",
    "Qwen3NextForCausalLM": "'LinearAttentionLayer' object has no attribute",
}
TABLE = root() / "data" / "zoo.csv"


def made(network):
    words = tokenizer()
    words.model_max_length = 96
    return wrap_model(small_network(network), words, f"a small {network}")


def samples(model):
    texts = [" ".join(model.tokenizer.convert_ids_to_tokens(ids)) for ids in PROMPTS]
    return pd.DataFrame(dict(id=list("abc"), source=texts))


@torch.inference_mode()
def plain_texts(model):
    "Greedy texts by transformers, one prompt at a time, up to and with the end token"
    for ids in PROMPTS:
        x = torch.tensor([ids])
        options = dict(attention_mask=torch.ones_like(x), do_sample=False, max_new_tokens=8, pad_token_id=2)
        out = model.model.generate(input_ids=x, **options)[0].tolist()
        text = out[1 if model.kind == "seq2seq" else len(ids) :]
        yield text[: text.index(1) + 1] if 1 in text else text


@torch.inference_mode()
def plain_logp(model, prompt, text):
    x = torch.tensor([prompt if model.kind == "seq2seq" else prompt + text])
    if model.kind == "seq2seq":
        logits = model.model(input_ids=x, decoder_input_ids=torch.tensor([[2, *text[:-1]]])).logits[0]
    else:
        logits = model.model(input_ids=x).logits[0, len(prompt) - 1 : -1]
    return logits.float().log_softmax(-1)[range(len(text)), text]


@torch.inference_mode()
def plain_previous(model, prompt, text):
    "Attention of each token to the one before, of the head with the largest mean in each layer"
    model.model.set_attn_implementation("eager")
    if model.kind == "seq2seq":
        given = dict(decoder_input_ids=torch.tensor([[2, *text]]), output_attentions=True)
        start, maps = 1, model.model(input_ids=torch.tensor([prompt]), **given).decoder_attentions
    else:
        ids = torch.tensor([prompt + text])
        start, maps = len(prompt), model.model(input_ids=ids, output_attentions=True).attentions
    diagonals = [own[0].diagonal(dim1=1, dim2=2)[:, start : start + len(text) - 1] for own in maps]
    return [heads[heads.double().mean(1).argmax()].numpy() for heads in diagonals]


@pytest.mark.parametrize("network", RIGHT)
def test_an_architecture_writes_reads_and_attends_as_transformers_does(network):
    model = made(network)
    settings = Decoding(samples=0, max_new_tokens=8, prompt="{source}", top_k=0)
    assert [row["ids"] for row in generate_texts(model, samples(model), settings)] == list(plain_texts(model))
    pairs = [(prompt, text) for prompt in PROMPTS for text in TEXTS]
    for reading, pair in zip(score_tokens(model, pairs), pairs):
        np.testing.assert_allclose(reading.logp, plain_logp(model, *pair), atol=2e-5)
    found = attention_statistics(model, [(PROMPTS[0], TEXTS[1])])[0]["attention_previous"]
    for own, plain in zip(found, plain_previous(model, PROMPTS[0], TEXTS[1]), strict=True):
        np.testing.assert_allclose(own[1:], plain, atol=2e-6)


@pytest.mark.parametrize("network", REFUSED)
def test_an_architecture_that_would_be_wrong_is_refused_by_name(network):
    with pytest.raises(BadCheckpoint, match=f"is a {network}, an architecture .*{REFUSED[network]}"):
        model = made(network)
        generate_texts(model, samples(model), Decoding(samples=0, max_new_tokens=8, prompt="{source}"))


def test_the_table_of_architectures_says_what_these_tests_see():
    table = pd.read_csv(TABLE, keep_default_na=False).set_index("network")
    assert not (table[["state", "attention"]] == "wrong").any(axis=None)
    assert (table.loc[RIGHT, ["state", "attention"]] == "right").all(axis=None)
    for network, why in REFUSED.items():
        assert table.at[network, "state"] == "refused" and why in table.at[network, "why"]
