"""Stand-ins of real checkpoints: the transformers classes that the profiles of settings.ini name, tiny,
with random weights, and the tokenizers of the shipped models."""

import json
import shutil
from pathlib import Path

import torch
from transformers import (
    AlbertConfig,
    AlbertForSequenceClassification,
    BartConfig,
    BartForConditionalGeneration,
    DebertaConfig,
    DebertaForSequenceClassification,
    DistilBertConfig,
    DistilBertModel,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaForSequenceClassification,
    RobertaModel,
    T5Config,
    T5ForConditionalGeneration,
)

from uetrust.core.settings import root

LABELS = dict(enumerate(("CONTRADICTION", "NEUTRAL", "ENTAILMENT")))
SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
ENCODER = SIZES | dict(vocab_size=900, max_position_embeddings=514, pad_token_id=1, type_vocab_size=1)
NLI = dict(id2label=LABELS, label2id={label: i for i, label in LABELS.items()})


def shipped(name):
    return root() / "data" / "models" / f"tiny-{name}"


def config_of(name):
    return json.loads((shipped(name) / "config.json").read_text())


def special(name):
    "The special tokens of a shipped model, for a model with its tokenizer"
    keys = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id")
    return {key: config_of(name)[key] for key in keys if config_of(name).get(key) is not None}


def bart():
    sizes = dict(d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64)
    heads = dict(encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=1024)
    return BartForConditionalGeneration(
        BartConfig(vocab_size=900, **sizes, **heads, **special("bart"))
    ), "bart"


def t5():
    sizes = dict(d_model=32, d_kv=16, d_ff=64, num_layers=2, num_decoder_layers=2, num_heads=2)
    return T5ForConditionalGeneration(T5Config(vocab_size=900, **sizes, **special("t5"))), "t5"


def llama():
    config = LlamaConfig(vocab_size=900, max_position_embeddings=4096, **SIZES, **special("llama"))
    return LlamaForCausalLM(config), "llama"


def gpt2():
    sizes = dict(n_embd=32, n_layer=2, n_head=2, n_positions=1024)
    return GPT2LMHeadModel(GPT2Config(vocab_size=900, **sizes, **special("llama"))), "llama"


def deberta():
    kind = dict(relative_attention=True, max_relative_positions=64, pos_att_type=["c2p", "p2c"])
    return DebertaForSequenceClassification(DebertaConfig(**ENCODER | kind, **NLI)), "encoder"


def roberta_nli():
    return RobertaForSequenceClassification(RobertaConfig(**ENCODER, **NLI)), "encoder"


def albert():
    kind = dict(embedding_size=16, type_vocab_size=2, pad_token_id=0)
    return AlbertForSequenceClassification(AlbertConfig(**ENCODER | kind, **NLI)), "nli"


def roberta():
    return RobertaModel(RobertaConfig(**ENCODER)), "encoder"


def mpnet():
    return MPNetModel(MPNetConfig(**{k: v for k, v in ENCODER.items() if k != "type_vocab_size"})), "encoder"


def distilbert():
    sizes = dict(dim=32, n_layers=2, n_heads=2, hidden_dim=64, vocab_size=900, max_position_embeddings=514)
    return DistilBertModel(DistilBertConfig(**sizes)), "encoder"


STAND_INS = {  # Stand-in -> checkpoints that it takes the place of
    bart: ("facebook/bart-large-cnn",),
    t5: (
        "MingZhong/unieval-sum",
        "MingZhong/unieval-fact",
        "google/flan-t5-xl",
        "t5-large",
        "ThomasNLG/t5-qg_squad1-en",
        "ThomasNLG/t5-qa_squad2neg-en",
        "mrm8488/t5-base-finetuned-question-generation-ap",
    ),
    llama: (
        "meta-llama/Llama-2-7b-chat-hf",
        "meta-llama/Llama-2-13b-chat-hf",
        "openlm-research/open_llama_3b",
        "huggyllama/llama-7b",
        "huggyllama/llama-13b",
        "lmsys/vicuna-7b-v1.1",
        "chavinlo/alpaca-native",
    ),
    gpt2: ("openai-community/gpt2-large",),
    deberta: ("microsoft/deberta-large-mnli", "microsoft/deberta-base-mnli"),
    roberta_nli: ("roberta-large-mnli", "ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli"),
    albert: ("tals/albert-xlarge-vitaminc-mnli", "ktrapeznikov/albert-xlarge-v2-squad-v2"),
    roberta: ("roberta-large", "microsoft/deberta-xlarge-mnli", "bert-base-multilingual-cased"),
    mpnet: ("sentence-transformers/all-mpnet-base-v2",),
    distilbert: ("sentence-transformers/distiluse-base-multilingual-cased-v2",),
}


def save_stand_in(make, folder):
    "A checkpoint as the hub would give it: weights, configuration, tokenizer"
    torch.manual_seed(1)
    model, tokenizer = make()
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    for path in shipped(tokenizer).iterdir():
        if "token" in path.name or path.name.startswith("chat_template"):
            shutil.copy(path, folder)
    settings = folder / "tokenizer_config.json"
    window = (
        512 if tokenizer in ("nli", "encoder") else getattr(model.config, "max_position_embeddings", 1024)
    )
    settings.write_text(json.dumps(json.loads(settings.read_text()) | dict(model_max_length=window)))
    if model.can_generate():
        GenerationConfig.from_model_config(model.config).save_pretrained(folder)
    return folder


def save_stand_ins(folder) -> dict:
    "Checkpoint -> folder of its stand-in"
    made = {}
    for make, checkpoints in STAND_INS.items():
        path = save_stand_in(make, Path(folder) / make.__name__)
        made |= dict.fromkeys(checkpoints, str(path))
    return made


def stand_in_folders(folder) -> dict:
    "Checkpoint -> folder of its stand-in, of `save_stand_ins`"
    found = STAND_INS.items()
    return {name: str(Path(folder) / make.__name__) for make, names in found for name in names}


def replaced(text, names):
    "settings.ini with stand-ins where a whole word is the name of a checkpoint"
    import re

    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"(?<![\w/.-]){re.escape(name)}(?![\w/.-])", names[name], text)
    return text
