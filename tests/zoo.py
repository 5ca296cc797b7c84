"""Every architecture of the installed transformers that generates text, in small: the real class and the real
configuration class, small shapes, random weights, and a tokenizer of 60 words."""

import copy
import inspect

import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

NETWORKS = {  # Class -> type of its configuration
    network: name
    for names in (
        MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    )
    for name, network in reversed(names.items())
    if isinstance(network, str)
}
GIVEN = dict(  # Further values of a configuration
    GPTNeoForCausalLM=dict(attention_types=[[["global", "local"], 2]]),
    Gemma3ForConditionalGeneration=dict(
        text_config=dict(
            vocab_size=60,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            max_position_embeddings=128,
            initializer_range=0.3,
        ),
        vision_config=dict(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            image_size=28,
            patch_size=14,
        ),
        mm_tokens_per_image=4,
        image_token_index=59,
        boi_token_index=58,
        eoi_token_index=57,
    ),
)
_HYBRID = ["linear_attention", "full_attention"] * 2
_ZAMBA = ["linear_attention", "hybrid"] * 2
GIVEN |= dict(
    BambaForCausalLM=dict(attn_layer_indices=[1, 3]),
    BailingHybridForCausalLM=dict(layer_group_size=2),
    BltForCausalLM=dict(encoder_hash_byte_group_vocab=100),
    CohereCompassForCausalLM=dict(
        rope_parameters={"full_attention": dict(rope_type="default", rope_theta=1e4, mrope_section=[2, 1, 1])}
    ),
    Dots3NoteForCausalLM=dict(num_key_value_heads=4),
    Gemma4AssistantForCausalLM=dict(hidden_size_per_layer_input=0),
    GraniteMoeHybridForCausalLM=dict(layer_types=_HYBRID),
    JambaForCausalLM=dict(attn_layer_offset=1, attn_layer_period=2),
    Lfm2MoeForCausalLM=dict(layer_types=["conv", "full_attention"] * 2),
    Mamba2ForCausalLM=dict(num_heads=8),
    Qwen4ExpForCausalLM=dict(
        indexer_n_heads=2, indexer_kv_heads=1, indexer_head_dim=8, indexer_budget=16, indexer_compress_ratio=4
    ),
    DbrxForCausalLM=dict(
        attn_config=dict(rope_theta=1e4, kv_n_heads=2, clip_qkv=8.0),
        ffn_config=dict(hidden_size=32, ffn_hidden_size=64),
    ),
    ReformerModelWithLMHead=dict(
        is_decoder=True,
        axial_pos_shape=[8, 16],
        axial_pos_embds_dim=[16, 16],
        attn_layers=["local"] * 4,
        local_attn_chunk_length=8,
    ),
    WhisperForCausalLM=dict(begin_suppress_tokens=None, suppress_tokens=None),
    XmodForCausalLM=dict(default_language="en_XX", languages=["en_XX"]),
    ZambaForCausalLM=dict(layers_block_type=_ZAMBA),
    Zamba2ForCausalLM=dict(layers_block_type=_ZAMBA),
    ZayaForCausalLM=dict(num_experts_per_tok=1),
)
MOST = 100_000_000  # Weights of a network in small
SPECIAL = dict(bos_token_id=0, eos_token_id=1, pad_token_id=2, decoder_start_token_id=2)
SIZES = {  # Beginning or end of a name in a configuration -> its value
    "vocab_size": 60,
    "vocab_size_per_layer_input": 60,
    "hidden_size": 32,
    "hidden_dim": 32,
    "d_model": 32,
    "n_embd": 32,
    "n_embed": 32,
    "embed_dim": 32,
    "emb_dim": 32,
    "dim": 32,
    "model_dim": 32,
    "embedding_size": 32,
    "input_embedding_size": 32,
    "word_embed_proj_dim": 32,
    "cross_attention_hidden_size": 32,
    "intermediate_size": 64,
    "ffn_hidden_size": 64,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "ffn_dim": 64,
    "d_ff": 64,
    "n_inner": 64,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "moe_shared_expert_intermediate_size": 32,
    "expert_ffn_hidden_size": 32,
    "num_hidden_layers": 4,
    "num_layers": 4,
    "n_layer": 4,
    "n_layers": 4,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_decoder_layers": 2,
    "num_attention_heads": 4,
    "num_heads": 4,
    "n_head": 4,
    "n_heads": 4,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "num_encoder_attention_heads": 4,
    "num_decoder_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "global_head_dim": 8,
    "attention_head_dim": 8,
    "d_kv": 8,
    "kv_channels": 8,
    "kv_lora_rank": 8,
    "q_lora_rank": 8,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 4,
    "qk_head_dim": 12,
    "v_head_dim": 8,
    "rotary_dim": 4,
    "max_position_embeddings": 128,
    "max_encoder_position_embeddings": 128,
    "max_decoder_position_embeddings": 128,
    "max_source_positions": 128,
    "max_target_positions": 128,
    "n_positions": 128,
    "n_ctx": 128,
    "max_seq_len": 128,
    "max_seq_length": 128,
    "seq_length": 128,
    "sliding_window": 64,
    "attention_window": 8,
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "moe_num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_k": 2,
    "moe_topk": 2,
    "top_k_experts": 2,
    "n_group": 1,
    "topk_group": 1,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_d_state": 8,
    "mamba_d_ssm": 64,
    "mamba_n_groups": 1,
    "mamba_num_heads": 8,
    "mamba_head_dim": 8,
    "ssm_state_size": 8,
    "state_size": 8,
    "n_groups": 1,
    "time_step_rank": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "hidden_size_per_layer_input": 8,
    "altup_num_inputs": 2,
    "laurel_rank": 4,
    "lru_width": 32,
    "image_size": 28,
    "patch_size": 14,
    "index_n_heads": 2,
    "index_head_dim": 8,
    "initializer_range": 0.3,
    "init_std": 0.3,
    "initializer_factor": 1.0,
}


def _small(config_class, given=()):  # Arguments of a configuration, those of its parts included
    names = set(inspect.signature(config_class.__init__).parameters)
    names |= {name for kind in config_class.__mro__ for name in getattr(kind, "__annotations__", {})}
    values = {name: value for name, value in SIZES.items() if name in names}
    if "kv_lora_rank" in names:  # Keys are made from one latent vector for all heads
        values["num_key_value_heads"] = SIZES["num_attention_heads"]
    for name, part in (getattr(config_class, "sub_configs", None) or {}).items():
        if inspect.isclass(part) and part is not transformers.AutoConfig:
            values[name] = _small(part)
    return values | SPECIAL | dict(given)


def _shrunk(values):  # Of a configuration as a dictionary, sizes and lists of layers made small
    found = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found[name] = _shrunk(value)
        elif name in SIZES and isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = SIZES[name]
        elif isinstance(value, list) and name.endswith("layer_types"):
            found[name] = value[: SIZES["num_hidden_layers"]]
        else:
            found[name] = value
    return found | {name: value for name, value in SPECIAL.items() if name in found}


def _weights(network, config):
    with torch.device("meta"):
        return getattr(transformers, network)(copy.deepcopy(config)).num_parameters()


def small_config(
    network,  # Name of its class, of `NETWORKS`
):
    "Configuration of an architecture in small; what its class raises where there is none."
    config_class = getattr(transformers, network).config_class or CONFIG_MAPPING[NETWORKS[network]]
    try:
        config = config_class(**_small(config_class, GIVEN.get(network, {})))
        if _weights(network, config) <= MOST:
            return config
    except Exception:  # Not every class takes all sizes by name
        pass
    config = config_class.from_dict(_shrunk(config_class().to_dict()))
    if (size := _weights(network, config)) > MOST:
        raise ValueError(f"it has {size:,} weights in small, more than {MOST:,}")
    return config


def _rope_sections(config):  # Of multimodal rotary embeddings: parts of half a head, which has 8 numbers
    rope = getattr(config.get_text_config(decoder=True), "rope_parameters", None)
    if isinstance(rope, dict) and "rope_type" in rope:
        rope["mrope_section"] = [2, 1, 1]


def small_network(
    network,  # Name of its class, of `NETWORKS`
    seed=1,  # Of the weights
):
    "The network of an architecture in small; whatever its class raises where that cannot be built."
    config = small_config(network)
    _rope_sections(config)
    config.architectures = [network]
    for part in {id(c): c for c in (config, config.get_text_config(decoder=True))}.values():
        for key, value in SPECIAL.items():
            setattr(part, key, value)
    torch.manual_seed(seed)
    return getattr(transformers, network)(config).eval()
