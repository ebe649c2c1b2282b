"""Tiny configurations of the architectures that mobius-onnx builds."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["EVERY", "SELECTION", "architectures", "configured"]

EVERY = ("f32", "f16", "int4")
SELECTION = {
    "llama": EVERY, "gemma3_text": EVERY, "gemma4_text": EVERY, "gemma4_assistant": EVERY, "gpt_oss": EVERY,
    "qwen3_next": ("f32", "int4"), "mamba": ("f32",), "bamba": ("f32",), "bert": ("f32", "f16"), "t5": ("f32",),
    "whisper": ("f32",), "vit": ("f32",), "llava": ("f32", "int4"),
}  # fmt: skip
"""The architectures that `make zoo-hub` builds, and the kinds of their weights."""

BASE: dict[str, Any] = {
    "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "max_position_embeddings": 64, "hidden_act": "silu",
    "rope_type": "default", "pad_token_id": 0, "type_vocab_size": 2, "image_size": 32, "patch_size": 8,
    "num_decoder_layers": 2, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 96,
    "max_source_positions": 8, "max_target_positions": 32, "rope_local_base_freq": 10000.0,
}  # fmt: skip
"""The sizes of those attributes that a configuration has."""
EXPERTS = {
    "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32, "n_shared_experts": 1,
}  # fmt: skip
LATENT = {
    "q_lora_rank": 32, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16,
    "num_key_value_heads": 4,
}  # fmt: skip
DELTA = {
    "linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"],
}  # fmt: skip
VISION = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2, "image_size": 32,
    "patch_size": 8, "out_hidden_size": 64, "head_dim": 16, "num_position_embeddings": 16,
    "position_embedding_size": 16, "mm_tokens_per_image": 4, "hidden_act": "gelu_pytorch_tanh",
}  # fmt: skip
AUDIO = {
    "attention_dim": 32, "attention_heads": 2, "num_blocks": 2, "linear_units": 48, "kernel_size": 3, "input_size": 80,
    "tp_num_blocks": 1, "adaptor_num_blocks": 1, "adaptor_ffn_dim": 48, "adaptor_num_heads": 2, "classify_num": 96,
    "d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 2, "encoder_ffn_dim": 48, "num_mel_bins": 80,
    "max_source_positions": 64, "downsample_hidden_size": 16, "output_dim": 64, "n_window": 4, "n_window_infer": 16,
    "conv_channels": 32, "adaptor_proj_dim": 64, "projection_hidden_size": 64,
}  # fmt: skip
OF_CLASSES: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("MoE", "DeepSeek", "GPTOSS", "JetMoe", "MiniMax", "Jamba", "Longcat", "GraniteMoe", "Qwen3Next"), EXPERTS),
    (("DeepSeek", "Longcat"), LATENT),
    (("Qwen35", "Qwen3Next"), DELTA),
)
"""Parts of the names of classes, and the attributes of such classes."""
SHARED = {
    "num_kv_shared_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8,
    "hidden_size_per_layer_input": 0, "vocab_size_per_layer_input": 0,
}  # fmt: skip
DRAFT = {"draft_vocab_size": 48, "target_hidden_size": 64, "num_hidden_layers": 1}
OF_KINDS: dict[str, dict[str, Any]] = {
    "DFlashDraftModel": {"target_layer_ids": [0, 1]},
    "Eagle3DraftModel": DRAFT,
    "Eagle3LlamaForCausalLM": DRAFT,
    "Eagle3Speculator": DRAFT,
    "LlamaForCausalLMEagle3": DRAFT,
    "Gemma4AssistantForCausalLM": SHARED,
    "Gemma4UnifiedAssistantForCausalLM": SHARED,
    "gemma4_assistant": SHARED,
    "gemma4_unified_assistant": SHARED,
    "mamba2": {"intermediate_size": 128, "num_heads": 8, "head_dim": 16, "n_groups": 1, "state_size": 8},
    "deepseek_v4": {
        "o_lora_rank": 16, "index_n_heads": 2, "index_head_dim": 16, "index_topk": 4, "compress_ratios": [0, 4],
    },
    "fastconformer_rnnt": {
        "rnnt_num_classes": 32, "rnnt_pred_hidden": 32, "rnnt_joint_hidden": 32, "fastconformer_feat_in": 80,
        "fastconformer_subsampling_conv_channels": 16,
    },
}  # fmt: skip
"""The attributes of single architectures."""


def architectures() -> list[str]:
    """The names of all architectures of mobius-onnx."""
    from mobius import registry

    return list(registry.architectures())


def configured(kind: str, *, is_half: bool = False, bits: int = 0, block: int = 32) -> tuple[Any, Any, str]:
    """The network of an architecture in tiny sizes, its configuration, and its task.

    With `is_half`, its floats have 16 bits. With `bits`, the weights of its linear layers and its embeddings have so
    many, with a scale for each `block`.
    """
    import onnx_ir as ir
    from mobius import _configs, registry

    found = registry.get_registration(kind)
    made = found.config_class or getattr(found.module_class, "config_class", None) or _configs.ArchitectureConfig
    task = found.task or getattr(found.module_class, "default_task", None) or "text-generation"
    given = {**BASE, **_of_class(found.module_class.__name__), **_parts(_configs, task), **OF_KINDS.get(kind, {})}
    if is_half:
        given["dtype"] = ir.DataType.FLOAT16
    if bits:
        how = {"bits": bits, "group_size": block, "quant_method": "gptq", "sym": False}
        given["quantization"] = _configs.QuantizationConfig(**how, quantize_embeddings=True, quantize_lm_head=True)
    known = {field.name for field in dataclasses.fields(made)}
    config = made(**{name: value for name, value in given.items() if name in known})
    return found.module_class(config), config, task


def _of_class(name: str) -> dict[str, Any]:
    given: dict[str, Any] = {}
    for parts, attributes in OF_CLASSES:
        if any(part in name for part in parts):
            given |= attributes
    return given


def _parts(configs: Any, task: str) -> dict[str, Any]:
    """The encoders of images and sounds that a task needs."""
    given: dict[str, Any] = {}
    if task in ("seq2seq", "speech-to-text"):
        given |= {"num_key_value_heads": BASE["num_attention_heads"]}
    if task.endswith(("vl", "vision-language", "gemma4", "unified", "multimodal", "mot")):
        given |= {"vision": configs.VisionConfig(**VISION), "image_token_id": 5}
    if "speech" in task or "audio" in task or task in ("phi4mm-multimodal", "gemma4", "tts"):
        given |= {"audio": configs.AudioConfig(**AUDIO), "audio_token_id": 6}
    return given
