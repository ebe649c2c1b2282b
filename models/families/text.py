"""The networks of transformers for text: encoders, decoders, decoders with a cache, and pairs of both."""

from __future__ import annotations

from typing import Any

from models.families.recipe import Exporter, Recipe, call, floats, mask, tokens

__all__ = ["recipes"]

ENCODERS = (
    "albert", "bert", "bert-generation", "big_bird", "camembert", "canine", "convbert", "data2vec-text", "deberta",
    "deberta-v2", "distilbert", "electra", "ernie", "esm", "flaubert", "fnet", "funnel", "ibert", "layoutlm", "lilt",
    "longformer", "luke", "markuplm", "megatron-bert", "mobilebert", "modernbert", "mpnet", "mra", "nystromformer",
    "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "splinter", "squeezebert", "tapas", "xlm",
    "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod", "yoso",
)  # fmt: skip
DECODERS = (
    "apertus", "arcee", "bamba", "biogpt", "bitnet", "bloom", "codegen", "cohere", "cohere2", "ctrl",
    "deepseek_v2", "deepseek_v3", "dots1", "ernie4_5", "exaone4", "falcon", "falcon_h1", "falcon_mamba", "gemma",
    "gemma2", "gemma3_text", "glm", "glm4", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_oss", "gptj",
    "granite", "granitemoe", "helium", "hunyuan_v1_dense", "jamba", "lfm2", "llama", "mamba", "mamba2", "minimax",
    "mistral", "mixtral", "mpt", "nanochat", "nemotron", "olmo", "olmo2", "olmo3", "olmoe", "openai-gpt", "opt",
    "persimmon", "phi", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next",
    "recurrent_gemma", "rwkv", "seed_oss", "smollm3", "stablelm", "starcoder2", "vaultgemma", "xglm",

)  # fmt: skip
LATENT = {
    "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8, "kv_lora_rank": 16, "q_lora_rank": 16,
    "head_dim": None, "num_key_value_heads": 4, "n_routed_experts": 8, "num_experts_per_tok": 2, "n_group": 1,
    "topk_group": 1, "first_k_dense_replace": 1,
    "moe_intermediate_size": 16,
}  # fmt: skip
FEW = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
SCAN = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_expand": 2}
DELTA = {
    "layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8,
}  # fmt: skip
"""The gated delta rule of Qwen3-Next, whose export has a few nodes for each of 64 steps."""
SPARSE = ("led", "longformer")
NEIGHBORS = {"attention_window": 4, "onnx_export": True}
"""The attention of neighbors without `as_strided`, for which PyTorch's older exporter writes a wrong model. It writes
the other form, `unfold`, for fixed sizes."""
STATED: dict[str, dict[str, Any]] = {
    "bamba": SCAN,
    "codegen": {"rotary_dim": 4},
    "deepseek_v2": LATENT,
    "deepseek_v3": LATENT,
    "dots1": {"n_shared_experts": 1, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    "falcon_h1": {**SCAN, "mamba_d_ssm": 64},
    "funnel": {
        "num_hidden_layers": None,
        "architectures": ["FunnelModel"],
        "block_sizes": [1, 1],
        "d_head": 8,
        "d_inner": 48,
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "gptj": {"rotary_dim": 4},
    "led": NEIGHBORS,
    "lilt": {"hidden_size": 48},
    "longformer": NEIGHBORS,
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 1, "state_size": 8},
    "olmoe": FEW,
    "qwen2_moe": {**FEW, "shared_expert_intermediate_size": 16},
    "qwen3_moe": FEW,
    "qwen3_next": {**FEW, **DELTA, "shared_expert_intermediate_size": 16},
    "squeezebert": {"embedding_size": 32},
    "xlnet": {"d_head": 8},
    "xmod": {"default_language": "en_XX"},
}
"""The attributes of types that need more than tiny sizes."""
RECORDED = ("fsmt", "led", "longformer", "prophetnet")
"""The types that only PyTorch's older exporter writes."""
UNMASKED = ("fnet", "xlnet")
FIXED = (
    "bamba",
    "canine",
    "falcon_h1",
    "falcon_mamba",
    "funnel",
    "jamba",
    "mamba",
    "mamba2",
    "recurrent_gemma",
    "rwkv",
)
"""The types that PyTorch exports for one length only."""
CACHED = ("gpt2", "llama", "qwen3", "gemma", "phi", "gpt_neox")
PAIRS = (
    "bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "fsmt", "led", "longt5", "m2m_100", "marian",
    "mbart", "mt5", "mvp", "nllb-moe", "pegasus", "pegasus_x", "plbart", "prophetnet", "switch_transformers", "t5",
    "umt5",
)  # fmt: skip
SIZES = {"batch": 2, "length": 8}, {"batch": 3, "length": 12}


def recipes() -> list[Recipe]:
    """One recipe for each model type, and a step with a cache for some."""
    return [
        *map(_encoder, ENCODERS),
        *map(_decoder, DECODERS),
        _llama3(),
        *map(_step, CACHED),
        *map(_pair, PAIRS),
    ]


def _encoder(kind: str) -> Recipe:
    batch, length = (2, 8) if kind in SPARSE else ("batch", 8 if kind in FIXED else "length")
    given = {"input_ids": tokens(64, batch, length)}
    if kind not in UNMASKED:
        given["attention_mask"] = mask(batch, length)
    network = call("models.families.tiny.model", kind, **STATED.get(kind, {}))
    return Recipe(f"transformers_{kind}", network, given, SIZES, ("text", "encoder"), exporter=_exporter(kind))


def _decoder(kind: str) -> Recipe:
    given = {"input_ids": tokens(64, "batch", 8 if kind in FIXED else "length"), "use_cache": False}
    network = call("models.families.tiny.causal", kind, **STATED.get(kind, {}))
    return Recipe(f"transformers_{kind}", network, given, SIZES, ("text", "decoder"))


def _llama3() -> Recipe:
    """Llama with the rotary embedding of Llama 3, which scales the low frequencies."""
    factors = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    rotary = {"rope_type": "llama3", "rope_theta": 500000.0, **factors}
    network = call("models.families.tiny.causal", "llama", rope_parameters=rotary, tie_word_embeddings=True)
    given = {"input_ids": tokens(64, "batch", "length"), "use_cache": False}
    return Recipe("transformers_llama3", network, given, SIZES, ("text", "decoder"))


def _step(kind: str) -> Recipe:
    heads = {"llama": 2, "qwen3": 2, "gemma": 2, "phi": 2}.get(kind, 4)
    network = call("models.families.wrapped.Step", call("models.families.tiny.causal", kind, num_hidden_layers=1))
    past = floats("batch", heads, "past", 8)
    given = {"input_ids": tokens(64, "batch", 1), "key": past, "value": past}
    sizes = {"batch": 2, "past": 8}, {"batch": 3, "past": 13}
    return Recipe(f"transformers_{kind}_step", network, given, sizes, ("text", "decoder", "cache"))


def _pair(kind: str) -> Recipe:
    batch, length = (2, 8) if kind in SPARSE else ("batch", "length")
    given = {
        "input_ids": tokens(64, batch, length),
        "attention_mask": mask(batch, length),
        "decoder_input_ids": tokens(64, batch, "written"),
        "use_cache": False,
    }
    network = call("models.families.tiny.model", kind, **STATED.get(kind, {}))
    sizes = {"batch": 2, "length": 8, "written": 5}, {"batch": 3, "length": 12, "written": 7}
    tags = ("text", "encoder", "decoder")
    return Recipe(f"transformers_{kind}", network, given, sizes, tags, exporter=_exporter(kind))


def _exporter(kind: str) -> Exporter:
    return "torchscript" if kind in RECORDED else "dynamo"
