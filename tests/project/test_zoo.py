"""Architectures of the installed transformers, real classes in small: each reads and writes as transformers
does, or is refused by name before any work. `data/zoo.csv` lists all that were tried."""

from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from safetensors.torch import save_file
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests.helpers.writers import tokenizer
from tests.helpers.zoo import (
    NETWORKS,
    PROMPTS,
    TABLE,
    TEXTS,
    made,
    plain_logp,
    plain_previous,
    plain_texts,
    samples,
)
from uetrust.core.checks import BadCheckpoint
from uetrust.core.settings import root
from uetrust.generation.decoding import Decoding
from uetrust.generation.local import generate_texts
from uetrust.models.forward import score_tokens
from uetrust.models.load import load_model
from uetrust.statistics.attention import attention_statistics

RIGHT = [
    "LlamaForCausalLM",
    "BartForConditionalGeneration",
    "T5ForConditionalGeneration",
    "Gemma3ForCausalLM",
    "DeepseekV3ForCausalLM",
    "FalconH1ForCausalLM",
]
WITHOUT_MAPS = [  # Right, but without attention scores
    "GitForCausalLM",  # Cannot share a prompt
    "MambaForCausalLM",
    "MptForCausalLM",
    "OpenAIGPTLMHeadModel",
    "Qwen3NextForCausalLM",
    "RecurrentGemmaForCausalLM",
    "T5Gemma2ForConditionalGeneration",
]
REFUSED = {
    "RwkvForCausalLM": "texts of a prompt alone are not its most probable words",
    "RobertaForCausalLM": "turns hidden states into logits by a step that `head`",
    "T5GemmaForConditionalGeneration": "a text after a shared prefix is not read as it is alone",
    "XLNetLMHeadModel": "a text in a batch is not read as it is alone, word by word",
}
NO_TEXT = {
    "Gemma4AssistantForCausalLM": "it drafts tokens for a larger network",
    "Gemma4UnifiedAssistantForCausalLM": "it drafts tokens for a larger network",
    "KyutaiSpeechToTextForConditionalGeneration": "it writes down sound, and takes no text",
}
NO_LAYER_INPUT = dict(model_type="gemma4_text", hidden_size_per_layer_input=0, vocab_size_per_layer_input=0)


def check_texts(model):  # Written and read as transformers does
    settings = Decoding(samples=0, max_new_tokens=8, prompt="{source}", top_k=0)
    assert [row["ids"] for row in generate_texts(model, samples(model), settings)] == list(plain_texts(model))
    pairs = [(prompt, text) for prompt in PROMPTS for text in TEXTS]
    for reading, pair in zip(score_tokens(model, pairs), pairs):
        np.testing.assert_allclose(reading.logp, plain_logp(model, *pair), atol=1e-4)


@pytest.mark.parametrize("network", RIGHT)
def test_an_architecture_writes_reads_and_attends_as_transformers_does(network):
    model = made(network)
    check_texts(model)
    found = attention_statistics(model, [(PROMPTS[0], TEXTS[1])])[0]["attention_previous"]
    for own, plain in zip(found, plain_previous(model, PROMPTS[0], TEXTS[1]), strict=True):
        np.testing.assert_allclose(own[1:], plain, atol=2e-6)


@pytest.mark.parametrize("network", WITHOUT_MAPS)
def test_an_architecture_that_cannot_share_prompts_or_pad_them_writes_and_reads_right(network):
    model = made(network)
    check_texts(model)
    with pytest.raises(ValueError, match="attention"):
        attention_statistics(model, [(PROMPTS[0], TEXTS[1])])


def test_samples_beams_and_states_are_those_of_each_prompt_alone():
    model, settings = (
        made("MambaForCausalLM"),
        Decoding(samples=2, beams=2, max_new_tokens=6, prompt="{source}"),
    )
    sources = samples(model)
    rows = generate_texts(model, sources, settings)
    for name in sources["id"]:
        alone = generate_texts(model, sources[sources["id"] == name], settings)
        assert [row["ids"] for row in rows if row["sample"] == name] == [row["ids"] for row in alone]
    assert not (model.shares_prompts or model.pads_prompts)
    pairs = [(PROMPTS[0], TEXTS[0]), (PROMPTS[1], TEXTS[1])]
    for (prompt, text), reading in zip(pairs, score_tokens(model, pairs, hidden=["decoder_mean"])):
        states = model.model.base_model(torch.tensor([prompt + text[:-1]])).last_hidden_state[0]
        np.testing.assert_allclose(
            reading.hidden["decoder_mean"], states.mean(0).detach().numpy(), rtol=0, atol=2e-5
        )


@pytest.mark.parametrize("network", REFUSED)
def test_an_architecture_that_would_be_wrong_is_refused_by_name(network):
    with pytest.raises(BadCheckpoint, match=f"is a {network}, an architecture .*{REFUSED[network]}"):
        model = made(network)
        generate_texts(model, samples(model), Decoding(samples=0, max_new_tokens=8, prompt="{source}"))


@pytest.mark.parametrize("network", NO_TEXT)
def test_an_architecture_that_continues_no_text_is_refused_before_its_weights_are_read(tmp_path, network):
    text = dict(text_config=NO_LAYER_INPUT) if network == "Gemma4AssistantForCausalLM" else {}
    config = CONFIG_MAPPING[NETWORKS[network]](**text)
    config.architectures = [network]
    for part in (config, tokenizer()):
        part.save_pretrained(tmp_path)
    save_file({}, tmp_path / "model.safetensors")
    with mock.patch("uetrust.models.load._load_network") as load:
        with pytest.raises(BadCheckpoint, match=f"is a {network}, an architecture .*{NO_TEXT[network]}"):
            load_model(tmp_path)
    assert not load.called


def test_the_table_of_architectures_says_what_these_tests_see():
    table = pd.read_csv(TABLE, keep_default_na=False).set_index("network")
    assert not (table[["state", "attention"]] == "wrong").any(axis=None)
    assert (table.loc[RIGHT, ["state", "attention"]] == "right").all(axis=None)
    assert (table.loc[WITHOUT_MAPS, "state"] == "right").all()
    assert (table.loc[WITHOUT_MAPS, "attention"] == "refused").all()
    for network, why in (REFUSED | NO_TEXT).items():
        assert table.at[network, "state"] == "refused" and why in table.at[network, "why"]
    assert (table.loc[table["state"] != "right", "why"] != "").all()


def test_every_architecture_of_the_version_that_was_tried_is_in_the_table():
    table = pd.read_csv(TABLE, keep_default_na=False).set_index("network")
    if set(table["transformers"]) != {transformers.__version__}:
        pytest.skip(f"the table is of transformers {set(table['transformers'])}: run scripts/try_zoo.py")
    assert set(table.index) == set(NETWORKS), "run scripts/try_zoo.py with what is missing"


@pytest.mark.own_target
@pytest.mark.parametrize("network", NETWORKS)
def test_every_architecture_is_as_the_table_says(network, monkeypatch):
    monkeypatch.syspath_prepend(root() / "scripts")
    from try_zoo import verdict

    row = pd.read_csv(TABLE, keep_default_na=False).set_index("network").loc[network]
    if row["transformers"] != transformers.__version__:
        pytest.skip(f"the table is of transformers {row['transformers']}: run scripts/try_zoo.py")
    assert verdict(network)[:2] == (row["state"], row["attention"])
