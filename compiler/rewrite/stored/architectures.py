"""The names that llama.cpp gives the weights of transformers' models, and the changes that it makes to them.

Source: `gguf-py/gguf/tensor_mapping.py` and the folder `conversion` of
[llama.cpp](https://github.com/ggml-org/llama.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["ARCHITECTURES", "DERIVED", "Architecture"]

Array = np.ndarray[Any, Any]

DERIVED = frozenset(["rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"])
"""Tensors that llama.cpp computes from the configuration. An exported model contains these numbers already."""

_IN_LAYER = re.compile(r"(?:.*\.)?(?:layers|h)\.(?P<number>\d+)\.(?P<module>.+)\.(?P<kind>weight|bias)")
_OUTSIDE = re.compile(r"(?:.*\.)?(?P<module>[^.]+)\.(?P<kind>weight|bias)")

_TOP = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_HEAD_NORMS = {"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"}
_FOUR_NORMS = {
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
_PHI3 = {"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}
_GPT2_TOP = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "lm_head": "output"}
_GPT2 = {
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}


@dataclass(frozen=True)
class Architecture:
    """An architecture of llama.cpp, whose conversion from transformers is known."""

    layer: Mapping[str, str]
    """The module of a layer, such as `mlp.up_proj` → the tensor of a block, such as `ffn_up`."""
    top: Mapping[str, str]
    """A module outside of the layers → its tensor."""
    permuted: bool = False
    """Whether the two halves of each head are interleaved in the rows of the queries' and keys' projections."""
    shifted: bool = False
    """Whether the weights of norms are larger by 1 than those of the model, which adds the 1 in each run."""

    def tensors_of(self, weight: str) -> list[str]:
        """The tensors that may hold a weight of transformers, the most likely first; empty if none has its name."""
        if found := _IN_LAYER.fullmatch(weight):
            name = self.layer.get(found["module"])
            return [f"blk.{found['number']}.{name}.{found['kind']}"] if name else []
        found = _OUTSIDE.fullmatch(weight)
        name = self.top.get(found["module"]) if found else None
        if found is None or name is None:
            return []
        named = f"{name}.{found['kind']}"
        return [named, "token_embd.weight"] if named == "output.weight" else [named]  # tied embeddings are stored once

    def order(self, tensor: str, rows: int, heads: tuple[int, int]) -> Array | None:
        """The rows of a tensor in the order of transformers; `None` for the order of the file.

        `heads` are the numbers of heads of queries, and of keys.

        Raises:
            ValueError: the rows cannot be divided among the heads.
        """
        part = tensor.split(".")[-2]
        if not self.permuted or part not in ("attn_q", "attn_k"):
            return None
        count = heads[part == "attn_k"]
        if count < 1 or rows % (2 * count):
            raise ValueError(f"{rows} rows cannot be divided among {count} heads with two halves each")
        return np.asarray(np.arange(rows).reshape(count, -1, 2).swapaxes(1, 2).reshape(-1))

    def shift(self, tensor: str) -> float:
        """The number that the conversion added to the elements of a tensor."""
        return 1.0 if self.shifted and tensor.endswith("norm.weight") else 0.0


ARCHITECTURES = {
    "llama": Architecture(_LAYER, _TOP, permuted=True),
    "qwen2": Architecture(_LAYER, _TOP),
    "qwen3": Architecture({**_LAYER, **_HEAD_NORMS}, _TOP),
    "gemma": Architecture(_LAYER, _TOP, shifted=True),
    "gemma2": Architecture({**_LAYER, **_FOUR_NORMS}, _TOP, shifted=True),
    "gemma3": Architecture({**_LAYER, **_HEAD_NORMS, **_FOUR_NORMS}, _TOP, shifted=True),
    "phi3": Architecture({**_LAYER, **_PHI3}, _TOP),
    "gpt2": Architecture(_GPT2, _GPT2_TOP),
}
"""`general.architecture` of a GGUF file → the conversion. Mistral's models have the architecture `llama`."""
