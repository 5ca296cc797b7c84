"""Toy networks of every kind, and pairs of texts for them."""

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from uetrust.models.load import wrap_model

# Toy models: 300 words, random weights, every family whose details differ
V = 300  # Size of the vocabulary


def tokenizer(around):
    made = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(
            models.WordLevel({"<s>": 0, "</s>": 1, "<pad>": 2, **{f"w{i}": i for i in range(3, V)}}, "<pad>")
        ),
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        model_max_length=64,
    )
    made.backend_tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    if around:
        made.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single=around, special_tokens=[("<s>", 0), ("</s>", 1)]
        )
    return made


IDS = dict(vocab_size=V, bos_token_id=0, eos_token_id=1, pad_token_id=2)
MAKE = dict(
    bart=lambda **k: BartForConditionalGeneration(
        BartConfig(
            **IDS,
            **(
                dict(
                    d_model=16,
                    encoder_layers=2,
                    decoder_layers=2,
                    encoder_attention_heads=2,
                    decoder_attention_heads=2,
                    encoder_ffn_dim=32,
                    decoder_ffn_dim=32,
                    max_position_embeddings=64,
                    decoder_start_token_id=1,
                    forced_eos_token_id=1,
                    init_std=0.4,
                    dropout=0.1,
                )
                | k
            ),
        )
    ),
    t5=lambda **k: T5ForConditionalGeneration(
        T5Config(
            **IDS,
            **(
                dict(
                    d_model=16,
                    d_kv=8,
                    d_ff=32,
                    num_layers=2,
                    num_heads=2,
                    decoder_start_token_id=2,
                    dropout_rate=0.1,
                )
                | k
            ),
        )
    ),
    gpt2=lambda **k: GPT2LMHeadModel(
        GPT2Config(**IDS, **(dict(n_embd=16, n_layer=2, n_head=2, n_positions=64, initializer_range=0.4) | k))
    ),
    llama=lambda **k: LlamaForCausalLM(
        LlamaConfig(
            **IDS,
            **(
                dict(
                    hidden_size=16,
                    intermediate_size=32,
                    num_hidden_layers=2,
                    num_attention_heads=2,
                    max_position_embeddings=64,
                    initializer_range=0.4,
                )
                | k
            ),
        )
    ),
)
KINDS = list(MAKE)


def toy(kind, dtype=torch.float64, **config):
    torch.manual_seed(1)
    network = MAKE[kind](**config).to(dtype)
    if kind == "bart":
        network.final_logits_bias.copy_(torch.randn(1, V, dtype=dtype))
    return wrap_model(network, tokenizer({"bart": "<s> $A </s>", "t5": "$A </s>"}.get(kind)), f"toy {kind}")


def sentence(rng, n):
    return " ".join(f"w{i}" for i in rng.integers(3, V, n))


def some_pairs(seed=0):
    rng = np.random.default_rng(seed)
    sources = [sentence(rng, n) for n in (5, 31, 12, 12, 1, 24)]
    return [(source, sentence(rng, n)) for source in sources for n in (1, 9, 4, 17)]


PAIRS = some_pairs()
