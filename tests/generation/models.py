"""Small language models of transformers with seeded weights, and their exports with caches as inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compiler

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

PROMPT = np.array([[3, 1, 41, 5, 92, 6, 53]])
"""The tokens with which each text begins."""
COUNT = 20
"""How many tokens each test generates."""

SIZES = {
    "vocab_size": 211,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "initializer_range": 0.2,
    "bos_token_id": 0,
    "eos_token_id": None,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
}
"""The sizes of most models. Without a token that ends a text, each text has as many tokens as asked."""
HEADS = {"head_dim": 16}

FAMILIES: dict[str, dict[str, Any]] = {
    "GPT2": {"n_layer": 2, "n_head": 4, "n_embd": 64, "n_positions": 96, "vocab_size": 211, "eos_token_id": None},
    "Llama": SIZES,
    "Qwen2": SIZES,
    "Qwen3": {**SIZES, **HEADS},
    "Gemma": {**SIZES, **HEADS, "tie_word_embeddings": True},
    "Phi": SIZES,
    "Phi3": SIZES,
    "Mixtral": {**SIZES, "num_local_experts": 4, "experts_implementation": "batched_mm"},
}
"""The models that write a text from left to right, with their settings."""


def decoder(family: str, dtype: Any = torch.float32) -> Any:
    """A model of `FAMILIES`."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family])
    kind = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    return getattr(transformers, kind)(config).eval().to(dtype)


def tokens_of(model: Any, prompt: Any = PROMPT, **settings: Any) -> list[int]:
    """The tokens that transformers generates after `prompt`."""
    prompt = torch.from_numpy(prompt)
    settings = {"do_sample": False, "max_new_tokens": COUNT, "min_new_tokens": COUNT, **settings}
    with torch.no_grad():
        found = model.generate(prompt, attention_mask=torch.ones_like(prompt), **settings)
    return list(found[0, prompt.shape[1] :].tolist())


class Step(torch.nn.Module):
    """Tokens, a mask over all tokens, and a key and value `[batch, heads, past, size]` per layer → logits, and caches."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, *past: Any) -> Any:
        cache = transformers.DynamicCache(zip(past[::2], past[1::2], strict=True))
        found = self.model(input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        return found.logits, *flat(found.past_key_values)


def flat(cache: Any) -> list[Any]:
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]
