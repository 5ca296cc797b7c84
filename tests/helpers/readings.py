"""Tiny networks that read: a framed tokenizer, an encoder."""

import torch
from tokenizers import processors
from transformers import BertConfig, BertForSequenceClassification

from tests.helpers.writers import tiny, tokenizer
from uetrust.models.load import wrap_model


def encoder():
    "A classifier of 60 words that knows three labels"
    torch.manual_seed(3)
    tokens = tokenizer()
    tokens.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="[ $A ]", pair="[ $A ] $B:1 ]:1", special_tokens=[("[", 3), ("]", 4)]
    )
    tokens.model_max_length = 64
    config = BertConfig(
        vocab_size=60,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        initializer_range=0.5,
        pad_token_id=2,
        id2label={0: "CONTRADICTION", 1: "ENTAILMENT", 2: "NEUTRAL"},
        label2id={"CONTRADICTION": 0, "ENTAILMENT": 1, "NEUTRAL": 2},
    )
    return wrap_model(BertForSequenceClassification(config), tokens, "encoder")


def framed(kind):
    "A model whose tokenizer ends every text"
    model = tiny(kind)
    if kind != "llama":
        model.tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", 1)]
        )
    return model


def save_roomy(folder):
    "Save an NLI model of random weights that takes 900 tokens, so that only a metric's own window cuts"
    small = encoder()
    config = BertConfig.from_dict(small.model.config.to_dict() | dict(max_position_embeddings=900))
    small.tokenizer.model_max_length = 900
    BertForSequenceClassification(config).save_pretrained(folder)
    small.tokenizer.save_pretrained(folder)
    return folder
