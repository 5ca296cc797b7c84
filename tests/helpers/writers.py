"""Tiny networks that write, their samples and settings, and the files of a bank."""

import random
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from uetrust.generation.decoding import Decoding
from uetrust.generation.local import fill_local_bank
from uetrust.models.load import wrap_model

WORDS = "<s> </s> <pad> [ ] ".split() + [f"w{i}" for i in range(55)]
SAMPLES = pd.DataFrame(
    [
        dict(id=f"s{i}", source=" ".join(random.Random(i).choices(WORDS[5:], k=3 + 5 * (i % 7))))
        for i in range(20)
    ]
)
CHAT = "{% for m in messages %}[ {{ m['content'] }} ]{% endfor %}"


def tokenizer():
    made = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<pad>")),
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
    )
    made.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return made


ENDS = dict(bos_token_id=0, eos_token_id=1, pad_token_id=2)
NETWORKS = dict(
    bart=lambda: BartForConditionalGeneration(
        BartConfig(
            vocab_size=60,
            d_model=32,
            encoder_layers=2,
            decoder_layers=2,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=64,
            decoder_ffn_dim=64,
            max_position_embeddings=96,
            decoder_start_token_id=1,
            forced_eos_token_id=1,
            init_std=0.3,
            **ENDS,
        )
    ),
    t5=lambda: T5ForConditionalGeneration(
        T5Config(
            vocab_size=60,
            d_model=32,
            d_kv=16,
            d_ff=64,
            num_layers=2,
            num_heads=2,
            decoder_start_token_id=2,
            initializer_factor=1.5,
            eos_token_id=1,
            pad_token_id=2,
        )
    ),
    llama=lambda: LlamaForCausalLM(
        LlamaConfig(
            vocab_size=60,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            max_position_embeddings=96,
            initializer_range=0.3,
            **ENDS,
        )
    ),
)


def tiny(kind, chat=False):
    "A model of 60 words, the same weights each time"
    torch.manual_seed(1)
    network, words = NETWORKS[kind](), tokenizer()
    words.model_max_length = 96
    if chat:
        words.chat_template = CHAT
    return wrap_model(network, words, kind)


SETTINGS = Decoding(samples=4, max_new_tokens=12, prompt="w1 {source} w2")
S = SETTINGS  # Imported by other test files


def files(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir() if not path.name.startswith(".")}


# Kill it
HARD = replace(SETTINGS, samples=10, beams=3)


def one_worker(folder, i, n):
    fill_local_bank(folder, "d", "bart", SAMPLES, tiny("bart"), HARD, size=2, worker=(i, n), progress=False)
