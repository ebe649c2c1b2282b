"""The names that llama.cpp gives the weights of transformers' models."""

from __future__ import annotations

import pytest

from compiler.rewrite.stored.architectures import ARCHITECTURES

NAMES = [
    ("llama", "model.layers.31.self_attn.q_proj.weight", "blk.31.attn_q.weight"),
    ("llama", "model.layers.0.self_attn.o_proj.weight", "blk.0.attn_output.weight"),
    ("llama", "wrapped.model.layers.0.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"),
    ("llama", "model.embed_tokens.weight", "token_embd.weight"),
    ("llama", "model.norm.weight", "output_norm.weight"),
    ("llama", "lm_head.weight", "output.weight"),
    ("qwen2", "model.layers.3.self_attn.k_proj.bias", "blk.3.attn_k.bias"),
    ("qwen3", "model.layers.3.self_attn.k_norm.weight", "blk.3.attn_k_norm.weight"),
    ("gemma2", "model.layers.0.post_attention_layernorm.weight", "blk.0.post_attention_norm.weight"),
    ("gemma3", "model.layers.0.pre_feedforward_layernorm.weight", "blk.0.ffn_norm.weight"),
    ("gemma3", "model.layers.0.post_feedforward_layernorm.weight", "blk.0.post_ffw_norm.weight"),
    ("phi3", "model.layers.0.mlp.gate_up_proj.weight", "blk.0.ffn_up.weight"),
    ("phi3", "model.layers.0.self_attn.qkv_proj.weight", "blk.0.attn_qkv.weight"),
    ("gpt2", "transformer.h.0.attn.c_proj.bias", "blk.0.attn_output.bias"),
    ("gpt2", "transformer.wpe.weight", "position_embd.weight"),
    ("gpt2", "transformer.ln_f.bias", "output_norm.bias"),
    ("llama", "model.layers.0.self_attn.rotary_emb.inv_freq", ""),
    ("llama", "model.layers.0.mlp.experts.0.weight", ""),
]
"""Names in llama.cpp's `gguf-py/gguf/tensor_mapping.py`."""


@pytest.mark.parametrize(("architecture", "weight", "tensor"), NAMES)
def test_names_of_llama_cpp(architecture: str, weight: str, tensor: str) -> None:
    assert ARCHITECTURES[architecture].tensors_of(weight)[:1] == ([tensor] if tensor else [])
