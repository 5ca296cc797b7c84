"""Stand-ins of fact checkers and of regressors of translations: the classes of the released checkpoints."""

import io
import json

import torch
from safetensors.torch import save_file
from transformers import (
    DebertaV2Config,
    DebertaV2ForSequenceClassification,
    ModernBertConfig,
    ModernBertForTokenClassification,
    MT5Config,
    MT5ForConditionalGeneration,
    RobertaConfig,
    RobertaForSequenceClassification,
    T5Config,
    T5ForConditionalGeneration,
    T5ForTokenClassification,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from tests.helpers import stand_ins

T5_SIZES = dict(d_model=32, d_kv=16, d_ff=64, num_layers=2, num_heads=2)


def roberta():
    return RobertaForSequenceClassification(RobertaConfig(**stand_ins.ENCODER, num_labels=2)), "encoder"


def deberta():
    kind = dict(
        relative_attention=True,
        position_biased_input=False,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_buckets=16,
        max_position_embeddings=512,
    )
    config = DebertaV2Config(**stand_ins.ENCODER | kind, num_labels=2)
    return DebertaV2ForSequenceClassification(config), "encoder"


def flan():
    return T5ForConditionalGeneration(T5Config(vocab_size=900, **T5_SIZES, **stand_ins.special("t5"))), "t5"


def seahorse():
    return MT5ForConditionalGeneration(MT5Config(vocab_size=900, **T5_SIZES, **stand_ins.special("t5"))), "t5"


def modernbert():
    sizes = stand_ins.SIZES | dict(max_position_embeddings=8192, pad_token_id=1, vocab_size=900)
    return ModernBertForTokenClassification(ModernBertConfig(**sizes, num_labels=2)), "encoder"


def token_t5():
    return T5ForTokenClassification(T5Config(vocab_size=900, **T5_SIZES)), "t5"


def xlm_roberta():
    return XLMRobertaModel(XLMRobertaConfig(**stand_ins.ENCODER)), "encoder"


def metricx():  # Small, but with the vocabulary of mT5
    sizes = dict(d_model=4, d_kv=2, d_ff=8, num_layers=1, num_heads=2)
    return MT5ForConditionalGeneration(MT5Config(vocab_size=250112, **sizes, **stand_ins.special("t5"))), "t5"


def save(make, folder):
    return stand_ins.save_stand_in(make, folder)


def released_comet(folder, network, kind, transformation="sparsemax", **settings):
    "Folder of COMET or CometKiwi as it is published; the weights of its parts"
    torch.manual_seed(5)
    width, depth = network.config.hidden_size, network.config.num_hidden_layers + 1
    sizes = [(6 * width if kind == "regression_metric" else width, 12), (12, 6), (6, 1)]
    layers = [torch.nn.Linear(*size) for size in sizes]
    scalars = torch.randn(depth)
    state = {f"encoder.model.{name}": tensor for name, tensor in network.state_dict().items()}
    state |= {f"layerwise_attention.scalar_parameters.{i}": scalars[i : i + 1] for i in range(depth)}
    state |= {"layerwise_attention.gamma": torch.tensor([1.3])}
    for i, layer in enumerate(layers):
        state |= {f"estimator.ff.{3 * i}.{name}": tensor for name, tensor in layer.state_dict().items()}
    given = dict(class_identifier=kind, encoder_model="XLM-RoBERTa", layer="mix", pool="avg") | settings
    given |= dict(activations="Tanh", layer_norm="false", layer_transformation=transformation)
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "hparams.yaml").write_text("".join(f"{name}: {value}\n" for name, value in given.items()))
    file = io.BytesIO()
    torch.save(dict(state_dict=state, epoch=1), file)
    (folder / "checkpoints" / "model.ckpt").write_bytes(file.getvalue())
    return scalars, 1.3, layers


def released_hhem(folder, network):
    "Folder of HHEM-2.1-open as it is published"
    folder.mkdir()
    state = {f"t5.{name}": tensor.contiguous().clone() for name, tensor in network.state_dict().items()}
    state.pop("t5.transformer.encoder.embed_tokens.weight")  # The same as transformer.shared.weight
    save_file(state, folder / "model.safetensors", dict(format="pt"))
    named = dict(model_type="HHEMv2Config", auto_map=dict(AutoConfig="configuration_hhem_v2.HHEMv2Config"))
    (folder / "config.json").write_text(json.dumps(named | dict(foundation="google/flan-t5-base")))
    return folder
