"""Small language models of transformers with seeded weights, and their exports with caches as inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import compiler

torch = pytest.importorskip("torch", reason="needs PyTorch")
transformers = pytest.importorskip("transformers", reason="needs transformers")

PROMPT = np.array([[3, 1, 41, 5, 92, 6, 53]])
"""The tokens with which each text begins."""
COUNT = 20
"""The number of tokens that each text gets."""

_SIZES = {
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
_GPT2 = {"n_layer": 2, "n_head": 4, "n_embd": 64, "n_positions": 96, "vocab_size": 211, "initializer_range": 0.2}

FAMILIES: dict[str, dict[str, Any]] = {
    "GPT2": {**_GPT2, "bos_token_id": 0, "eos_token_id": None, "tie_word_embeddings": False},
    "Llama": _SIZES,
    "Qwen2": _SIZES,
    "Qwen3": {**_SIZES, "head_dim": 16},
    "Gemma": {**_SIZES, "head_dim": 16},
    "Phi": _SIZES,
    "Phi3": _SIZES,
    "Mixtral": {**_SIZES, "num_local_experts": 4, "experts_implementation": "batched_mm"},
}
"""Decoders with two layers, and their settings. No token ends a text."""


def decoder_of(family: str, dtype: Any = torch.float32) -> Any:
    """A model of `FAMILIES`."""
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**FAMILIES[family])
    kind = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
    return getattr(transformers, kind)(config).to(dtype).eval()


def generated(model: Any, inputs: Any = PROMPT, **settings: Any) -> list[int]:
    """The last tokens of those that transformers generates from `inputs`."""
    inputs = torch.from_numpy(inputs)
    settings = {"do_sample": False, "max_new_tokens": COUNT, "min_new_tokens": COUNT, **settings}
    with torch.no_grad():
        found = model.generate(inputs, **settings)
    return list(found[0, -COUNT:].tolist())


def flat(cache: Any) -> list[Any]:
    """The key and the value of each layer."""
    return [tensor for layer in cache.layers for tensor in (layer.keys, layer.values)]


def cache_of(past: Sequence[Any]) -> Any:
    """The cache of transformers with these keys and values."""
    return transformers.DynamicCache(zip(past[::2], past[1::2], strict=True))


class Step(torch.nn.Module):
    """Tokens `[batch, n]`, a mask of all tokens, and keys and values `[batch, heads, past, size]` → logits, caches."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, past_0: Any, past_1: Any, past_2: Any, past_3: Any) -> Any:
        cache = cache_of([past_0, past_1, past_2, past_3])
        found = self.model(input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        return found.logits, *flat(found.past_key_values)


def exported(model: Any, path: Path) -> Path:
    """The ONNX file of one of the decoders, with the names that Optimum writes."""
    tokens, mask = torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 10, dtype=torch.int64)
    with torch.no_grad():
        past = flat(model(mask[:, :7], use_cache=True).past_key_values)
    dynamic = {"input_ids": {0: "batch", 1: "tokens"}, "attention_mask": {0: "batch", 1: "total"}}
    dynamic |= {f"past_{at}": {0: "batch", 2: "past"} for at in range(4)}
    outputs = ["logits", *names("present")]
    compiler.export(Step(model), (tokens, mask, *past), path, dynamic, outputs=outputs, check=False)
    return renamed(path, {f"past_{at}": name for at, name in enumerate(names("past_key_values"))})


def names(prefix: str, kinds: Iterable[str] = ("",)) -> list[str]:
    """The names of caches, such as `present.0.key`, or `present.0.decoder.key` for the kind `decoder.`."""
    return [f"{prefix}.{at}.{kind}{part}" for kind in kinds for at in range(2) for part in ("key", "value")]


def renamed(path: Path, new: dict[str, str]) -> Path:
    """The file, with other names of its inputs."""
    model = ir.load(path)
    for value in model.graph.inputs:
        value.name = new.get(str(value.name), value.name)
    ir.save(model, path)
    return path
