"""The networks of transformers for text: encoders, decoders, decoders with a cache, and pairs of both."""

from __future__ import annotations

from typing import Any

from models.families.recipe import Recipe, call, floats, mask, tokens

__all__ = ["recipes"]

ENCODERS = (
    "albert", "bert", "bert-generation", "big_bird", "camembert", "canine", "convbert", "data2vec-text", "deberta",
    "deberta-v2", "distilbert", "electra", "ernie", "esm", "flaubert", "fnet", "funnel", "ibert", "layoutlm", "lilt",
    "longformer", "luke", "markuplm", "megatron-bert", "mobilebert", "modernbert", "mpnet", "mra", "nystromformer",
    "rembert", "roberta", "roberta-prelayernorm", "roc_bert", "roformer", "splinter", "squeezebert", "tapas", "xlm",
    "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod", "yoso",
)  # fmt: skip
DECODERS = (
    "apertus", "arcee", "bamba", "biogpt", "bitnet", "bloom", "codegen", "cohere", "cohere2", "ctrl", "dbrx",
    "deepseek_v2", "deepseek_v3", "dots1", "ernie4_5", "exaone4", "falcon", "falcon_h1", "falcon_mamba", "gemma",
    "gemma2", "gemma3_text", "glm", "glm4", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_oss", "gptj",
    "granite", "granitemoe", "helium", "hunyuan_v1_dense", "jamba", "lfm2", "llama", "mamba", "mamba2", "minimax",
    "mistral", "mixtral", "mpt", "nanochat", "nemotron", "olmo", "olmo2", "olmo3", "olmoe", "openai-gpt", "opt",
    "persimmon", "phi", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "qwen3_next",
    "recurrent_gemma", "rwkv", "seed_oss", "smollm3", "stablelm", "starcoder2", "vaultgemma", "xglm", "zamba",
    "zamba2",
)  # fmt: skip
STATED: dict[str, dict[str, Any]] = {
    "squeezebert": {"embedding_size": 32},
    "xlnet": {"d_head": 8},
    "xmod": {"default_language": "en_XX"},
}
"""The attributes of types that need more than tiny sizes."""
CACHED = ("gpt2", "llama", "qwen3", "gemma", "phi", "gpt_neox")
PAIRS = (
    "bart", "bigbird_pegasus", "blenderbot", "blenderbot-small", "fsmt", "led", "longt5", "m2m_100", "marian",
    "mbart", "mt5", "mvp", "nllb-moe", "pegasus", "pegasus_x", "plbart", "prophetnet", "switch_transformers", "t5",
    "t5gemma", "udop", "umt5",
)  # fmt: skip
SIZES = {"batch": 2, "length": 8}, {"batch": 3, "length": 12}


def recipes() -> list[Recipe]:
    """One recipe for each model type, and a step with a cache for some."""
    return [
        *map(_encoder, ENCODERS),
        *map(_decoder, DECODERS),
        *map(_step, CACHED),
        *map(_pair, PAIRS),
    ]


def _encoder(kind: str) -> Recipe:
    given = {"input_ids": tokens(64, "batch", "length"), "attention_mask": mask("batch", "length")}
    network = call("models.families.tiny.model", kind, **STATED.get(kind, {}))
    return Recipe(f"transformers_{kind}", network, given, SIZES, ("text", "encoder"))


def _decoder(kind: str) -> Recipe:
    given = {"input_ids": tokens(64, "batch", "length"), "use_cache": False}
    network = call("models.families.tiny.causal", kind, **STATED.get(kind, {}))
    return Recipe(f"transformers_{kind}", network, given, SIZES, ("text", "decoder"))


def _step(kind: str) -> Recipe:
    heads = {"llama": 2, "qwen3": 2, "gemma": 2}.get(kind, 4)
    network = call("models.families.wrapped.Step", call("models.families.tiny.causal", kind, num_hidden_layers=1))
    past = floats("batch", heads, "past", 8)
    given = {"input_ids": tokens(64, "batch", 1), "key": past, "value": past}
    sizes = {"batch": 2, "past": 8}, {"batch": 3, "past": 13}
    return Recipe(f"transformers_{kind}_step", network, given, sizes, ("text", "decoder", "cache"))


def _pair(kind: str) -> Recipe:
    given = {
        "input_ids": tokens(64, "batch", "length"),
        "attention_mask": mask("batch", "length"),
        "decoder_input_ids": tokens(64, "batch", "written"),
        "use_cache": False,
    }
    network = call("models.families.tiny.model", kind, **STATED.get(kind, {}))
    sizes = {"batch": 2, "length": 8, "written": 5}, {"batch": 3, "length": 12, "written": 7}
    return Recipe(f"transformers_{kind}", network, given, sizes, ("text", "encoder", "decoder"))
