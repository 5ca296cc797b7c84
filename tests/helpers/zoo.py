"""Every architecture of the installed transformers that generates text, in small: the real class and the real
configuration class, small shapes, random weights, and a tokenizer of 60 words."""

import copy
import inspect
from unittest import mock

import pandas as pd
import torch
import transformers
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from tests.helpers.writers import tokenizer
from uetrust.core.settings import root
from uetrust.models.load import wrap_model

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
GIVEN |= dict(
    ChameleonForConditionalGeneration=dict(vocabulary_map={"<image>": 59}),
    CohereCompassForConditionalGeneration=dict(
        text_config=dict(
            rope_parameters=dict(
                full_attention=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 1, 1])
            )
        )
    ),
    Cosmos3EdgeForConditionalGeneration=dict(
        text_config=dict(
            rope_parameters=dict(rope_type="default", rope_theta=10000.0, mrope_section=[2, 1, 1])
        )
    ),
    DeepseekOcr2ForConditionalGeneration=dict(
        text_config=dict(mlp_layer_types=["dense", "sparse", "sparse", "sparse"])
    ),
    DiffusionGemmaForBlockDiffusion=dict(vision_config=dict(model_type="gemma4_vision")),
    Dots3NoteForConditionalGeneration=dict(
        text_config=dict(num_key_value_heads=4),
        vision_config=dict(adapter_in_dim=32, adapter_out_dim=32, pyramid_num_routed=[-1, -1, -1, -1]),
        audio_config=dict(adapter_input_size=32, adapter_out_dim=32, downsample_hidden_size=8),
    ),
    Emu3ForConditionalGeneration=dict(
        vocabulary_map={"<image>": 59}, vq_config=dict(base_channels=32, codebook_size=64)
    ),
    Ernie4_5_VLMoeForConditionalGeneration=dict(
        text_config=dict(
            moe_intermediate_size=[32, 32],
            rope_parameters=dict(rope_type="default", rope_theta=1e4, mrope_section=[1, 1, 2]),
        ),
        vision_config=dict(depth=2, num_heads=4),
    ),
    FastVlmForConditionalGeneration=dict(
        text_config=dict(model_type="qwen2"), vision_config=dict(model_type="siglip_vision_model")
    ),
    FunAsrNanoForConditionalGeneration=dict(
        text_config=dict(model_type="qwen3"),
        audio_config=dict(model_type="fun_asr_nano_encoder"),
        adaptor_config=dict(intermediate_size=8, projector_hidden_size=32),
    ),
    Gemma3nForCausalLM=dict(num_kv_shared_layers=0),
    Gemma3nForConditionalGeneration=dict(
        text_config=dict(num_kv_shared_layers=0),
        vision_config=dict(vocab_offset=50),
        audio_config=dict(vocab_offset=55, conf_num_hidden_layers=1),
    ),
    Granite4VisionForConditionalGeneration=dict(
        vision_config=dict(model_type="clip_vision_model", hidden_size=64),
        qformer_config=dict(model_type="blip_2_qformer"),
        downsample_rate="1/2",
        deepstack_layer_map=[[1, 0]],
        spatial_target_layers=[1],
        image_token_index=59,
    ),
    PerceptionLMForConditionalGeneration=dict(
        text_config=dict(model_type="llama"),
        vision_config=dict(model_type="timm_wrapper", model_args=dict(embed_dim=32)),
        image_token_id=59,
        video_token_id=58,
    ),
    Glm5NextForConditionalGeneration=dict(
        text_config=dict(qk_rope_head_dim=0, linear_num_heads=4, linear_head_dim=8, num_key_value_heads=4),
        vision_config=dict(depth=2, num_heads=4, out_hidden_size=32, projection_intermediate_size=64),
    ),
    GraniteDoclingForConditionalGeneration=dict(vision_config=dict(out_hidden_size=32)),
    Inkling2ForConditionalGeneration=dict(vision_config=dict(text_hidden_size=32)),
    JanusForConditionalGeneration=dict(
        text_config=dict(model_type="llama"),
        vq_config=dict(
            num_embeddings=64,
            base_channels=32,
            latent_channels=32,
            projection_dim=32,
            image_token_embed_dim=32,
        ),
        vision_config=dict(projection_dim=32),
    ),
    KimiLinearForCausalLM=dict(
        linear_num_heads=4,
        linear_head_dim=8,
        layer_types=["linear_attention", "full_attention", "linear_attention", "full_attention"],
    ),
    Kimi_K25ForConditionalGeneration=dict(text_config=dict(model_type="deepseek_v3")),
    MistralLarge4ForConditionalGeneration=dict(vision_config=dict(model_type="pixtral")),
    Molmo2ForConditionalGeneration=dict(
        vision_config=dict(image_size=[28, 28], num_position_embeddings=4),
        adapter_config=dict(vision_feature_layer=[1, 2], text_hidden_size=32),
    ),
    MuseSparkForConditionalGeneration=dict(
        text_config=dict(moe_hidden_size=32),
        audio_config=dict(out_hidden_size=32, hidden_sizes=[8, 8, 8, 8]),
        out_hidden_size=32,
        projector_hidden_size=32,
    ),
    MusicgenForCausalLM=dict(num_codebooks=1),
    MusicgenMelodyForCausalLM=dict(num_codebooks=1),
    Nemotron3_5TranscribeForConditionalGeneration=dict(
        text_config=dict(model_type="qwen3"), word_timestamp_config=dict(blank_token_id=59)
    ),
    Qwen2_5OmniForConditionalGeneration=dict(
        thinker_config=dict(vision_start_token_id=57),
        token2wav_config=dict(bigvgan_config=dict(upsample_initial_channel=64)),
    ),
    Qwen2_5OmniThinkerForConditionalGeneration=dict(vision_start_token_id=57),
    Qwen3OmniMoeForConditionalGeneration=dict(
        thinker_config=dict(vision_start_token_id=57),
        talker_config=dict(spatial_merge_size=2, text_config=dict(shared_expert_intermediate_size=32)),
    ),
    Qwen3OmniMoeThinkerForConditionalGeneration=dict(vision_start_token_id=57),
    Qwen4ExpForConditionalGeneration=dict(
        text_config=dict(
            indexer_n_heads=2,
            indexer_kv_heads=1,
            indexer_head_dim=8,
            indexer_budget=16,
            indexer_compress_ratio=4,
        )
    ),
    VibeVoiceAsrForConditionalGeneration=dict(
        text_config=dict(model_type="qwen2"),
        semantic_tokenizer_encoder_config=dict(
            model_type="vibevoice_acoustic_tokenizer_encoder", num_filters=2, depths=[1, 1, 1, 1, 1, 1, 1]
        ),
        acoustic_tokenizer_encoder_config=dict(
            model_type="vibevoice_acoustic_tokenizer_encoder", num_filters=2, depths=[1, 1, 1, 1, 1, 1, 1]
        ),
    ),
    xLSTMForCausalLM=dict(hidden_size=64, qk_dim_factor=1.0),
)
SECTIONS = dict(  # Where the parts of multimodal rotary embeddings differ from [2, 1, 1]
    Ernie4_5_VLMoeForConditionalGeneration=[1, 1, 2], Glm4vMoeForConditionalGeneration=[1, 1, 0]
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


def _part_class(kind, given):  # Of a part of a configuration; None where only its own type would say it
    if kind is transformers.AutoConfig:
        return CONFIG_MAPPING[given["model_type"]] if "model_type" in given else None
    return kind if inspect.isclass(kind) else None


def _small(config_class, given=()):  # Arguments of a configuration, those of its parts included
    names = set(inspect.signature(config_class.__init__).parameters)
    names |= {name for kind in config_class.__mro__ for name in getattr(kind, "__annotations__", {})}
    values, given = {name: value for name, value in SIZES.items() if name in names}, dict(given)
    if "kv_lora_rank" in names:  # Keys are made from one latent vector for all heads
        values["num_key_value_heads"] = SIZES["num_attention_heads"]
    for name, part in (getattr(config_class, "sub_configs", None) or {}).items():
        own = given.pop(name, {})
        if kind := _part_class(part, own):
            values[name] = _small(kind, own)
    return values | SPECIAL | given


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


BY_TIMM = ("gemma3n_vision", "timm_wrapper")  # Configurations of what the package timm makes


def _network(network, whole):  # Without the part by timm, which reads images: no text passes through it
    made = transformers.AutoModel.from_config

    def from_config(config, **options):
        return torch.nn.Identity() if config.model_type in BY_TIMM else made(config, **options)

    with mock.patch.object(transformers.AutoModel, "from_config", from_config):
        return getattr(transformers, network)(whole)


def _weights(network, config):
    with torch.device("meta"):
        return _network(network, copy.deepcopy(config)).num_parameters()


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


def _rope_sections(network, config):  # Of multimodal rotary embeddings: parts of half of what is turned
    rope = getattr(config.get_text_config(decoder=True), "rope_parameters", None)
    if isinstance(rope, dict) and "rope_type" in rope:
        rope["mrope_section"] = SECTIONS.get(network, [2, 1, 1])


def small_network(
    network,  # Name of its class, of `NETWORKS`
    seed=1,  # Of the weights
):
    "The network of an architecture in small; whatever its class raises where that cannot be built."
    config = small_config(network)
    _rope_sections(network, config)
    config.architectures = [network]
    for part in {id(c): c for c in (config, config.get_text_config(decoder=True))}.values():
        for key, value in SPECIAL.items():
            setattr(part, key, value)
    torch.manual_seed(seed)
    return _network(network, config).eval()


PROMPTS = [[5, 9, 11, 30, 7, 44, 21], [8, 33, 12], [17, 6, 50, 49, 13, 40, 20, 19, 18]]
TEXTS = [[9, 30, 31, 7, 1], [40, 12, 3, 3, 9, 8, 6]]
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
