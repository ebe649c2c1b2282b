"""Tiny networks of transformers: the architecture of a model type with few layers and channels."""

from __future__ import annotations

from typing import Any

__all__ = ["causal", "config", "model", "pair", "seeing"]

SIZES = {
    "vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
    "max_position_embeddings": 64, "num_key_value_heads": 2, "head_dim": 8, "embedding_size": 16, "pad_token_id": 0,
    "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "n_layer": 2, "n_head": 4, "ffn_dim": 48, "image_size": 32,
    "patch_size": 8, "num_layers": 2, "num_heads": 4, "d_ff": 48, "d_kv": 8, "num_decoder_layers": 2,
}  # fmt: skip
"""The sizes of those attributes that a type has."""

EXPERTS = {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"}
"""The attributes of types with a mixture of experts."""


def config(kind: str, **stated: Any) -> Any:
    """The configuration of a model type with tiny sizes. `stated` names other attributes, and replaces sizes.

    A size of `None` leaves the type's own.
    """
    from transformers import CONFIG_MAPPING

    made = CONFIG_MAPPING[kind]
    known = vars(made()) | dict.fromkeys(made.attribute_map)
    sizes = {name: size for name, size in SIZES.items() if name in known and isinstance(known[name], int | None)}
    whole = {**sizes, **stated}
    return made(**{name: value for name, value in whole.items() if value is not None or name not in SIZES})


def model(kind: str, **stated: Any) -> Any:
    """The network of a model type without a head."""
    from transformers import AutoModel

    return AutoModel.from_config(config(kind, **stated))


def causal(kind: str, **stated: Any) -> Any:
    """The network of a model type that predicts the next token."""
    from transformers import AutoModelForCausalLM

    experts = {"experts_implementation": "batched_mm"}  # the default is an operator that PyTorch does not export
    made = config(kind, **stated)
    return AutoModelForCausalLM.from_config(made, **(experts if EXPERTS & {*vars(made)} else {}))


def pair(encoder: Any, decoder: Any) -> Any:
    """The network that describes images: an encoder of images and a decoder of text with these configurations."""
    from transformers import VisionEncoderDecoderConfig, VisionEncoderDecoderModel

    return VisionEncoderDecoderModel(VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder))


def seeing(kind: str, **stated: Any) -> Any:
    """The network of a model type that reads images and predicts the next token."""
    from transformers import AutoModelForImageTextToText

    parts = {name: each.to_dict() if name.endswith("_config") else each for name, each in stated.items()}
    return AutoModelForImageTextToText.from_config(config(kind, **parts))
