"""Operators that AOTAutograd replaces with others, because PyTorch's exporter translates them wrongly or not at all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

__all__ = ["decompositions"]


def decompositions() -> dict[Any, Callable[..., Any]]:
    """Operator → a function of its arguments that calls other operators."""
    aten, known = torch.ops.aten, torch._decomp.decomposition_table
    # With statistics of the batch. The exporter translates them as in evaluation mode.
    normalizations = aten._native_batch_norm_legit_functional.default, aten._native_batch_norm_legit.no_stats
    found = {operator: known[operator] for operator in normalizations}
    return {**found, aten._transformer_encoder_layer_fwd.default: _encoder_layer}


def _encoder_layer(
    x: torch.Tensor,
    width: int,
    heads: int,
    in_weight: torch.Tensor,
    in_bias: torch.Tensor,
    out_weight: torch.Tensor,
    out_bias: torch.Tensor,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *weights: Any,
) -> torch.Tensor:
    """The fused layer of `torch.nn.TransformerEncoderLayer`, for an input `[N, L, width]`.

    `weights` are weight and bias of two normalizations and of two linear layers, then the mask and its kind, if any.
    """
    weight_1, bias_1, weight_2, bias_2, up, up_bias, down, down_bias, *masking = weights

    def norm_1(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (width,), weight_1, bias_1, eps)

    def norm_2(x: torch.Tensor) -> torch.Tensor:
        return functional.layer_norm(x, (width,), weight_2, bias_2, eps)

    def attended(x: torch.Tensor) -> torch.Tensor:
        parts = functional.linear(x, in_weight, in_bias).chunk(3, dim=-1)
        return functional.linear(_attention(parts, heads, *masking), out_weight, out_bias)

    def fed_forward(x: torch.Tensor) -> torch.Tensor:
        y = functional.linear(x, up, up_bias)
        return functional.linear(functional.gelu(y) if use_gelu else functional.relu(y), down, down_bias)

    if norm_first:
        x = x + attended(norm_1(x))
        return x + fed_forward(norm_2(x))
    x = norm_1(x + attended(x))
    return norm_2(x + fed_forward(x))


def _attention(
    parts: tuple[torch.Tensor, ...], heads: int, mask: torch.Tensor | None = None, kind: int | None = None
) -> torch.Tensor:
    """Attention of queries, keys and values, each `[N, L, width]`. The mask is true where no attention is paid.

    The mask has the shape `[L, L]` (kind 0), `[N, L]` (1) or `[N, heads, L, L]` (2).
    """
    query, key, value = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)
    scores = (query / math.sqrt(query.shape[-1])) @ key.transpose(-2, -1)
    if mask is not None:
        masked = mask.to(torch.bool)
        scores = scores.masked_fill(masked[:, None, None] if kind == 1 else masked, -math.inf)
    return (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2)
