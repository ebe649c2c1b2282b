"""Attention and transformers."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.layer import Layer, bools, f16, f32, function, layer

Q, K, V = f32(2, 4, 5, 8), f32(2, 4, 6, 8), f32(2, 4, 6, 8).flip(2)
X = f32(2, 5, 16)
MASK = bools(5, 6) | torch.eye(5, 6, dtype=torch.bool)
TENSOR_IS_CAUSAL = {"torchscript": "it traces is_causal as a tensor"}
PADDING = torch.tensor([[False, False, False, False, True], [False, False, True, True, True]])


class SelfAttention(nn.Module):
    """`nn.MultiheadAttention` of one tensor with itself."""

    def __init__(self, needs_weights: bool = False, **arguments: Any) -> None:
        super().__init__()
        self.attention, self.needs_weights = nn.MultiheadAttention(16, 4, batch_first=True, **arguments), needs_weights

    def forward(self, x: torch.Tensor, padding: torch.Tensor | None = None) -> Any:
        output, weights = self.attention(x, x, x, key_padding_mask=padding, need_weights=self.needs_weights)
        return (output, weights) if self.needs_weights else output


class CausalAttention(nn.Module):
    """Causal self-attention of language models, with one projection for queries, keys and values."""

    def __init__(self, rotary: bool = False) -> None:
        super().__init__()
        self.rotary, self.qkv, self.out = rotary, nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        q, k, v = (part.view(batch, time, 4, 4).transpose(1, 2) for part in self.qkv(x).split(width, 2))
        if self.rotary:
            q, k = rotated(q), rotated(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, time, width))


class HandWrittenAttention(nn.Module):
    """Attention in matrix products, with the triangle as a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.register_buffer("mask", torch.tril(torch.ones(8, 8)).view(1, 1, 8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        q, k, v = (f(x).view(batch, time, 4, 4).transpose(1, 2) for f in (self.query, self.key, self.value))
        scores = (q @ k.transpose(-2, -1)) / 2.0
        scores = scores.masked_fill(self.mask[:, :, :time, :time] == 0, float("-inf"))
        return (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, time, width)


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions: pairs `(x[i], x[i + D/2])` turned by `position · 10000^(−2i/D)`."""
    half = x.shape[-1] // 2
    inverse = 10000.0 ** (-torch.arange(half, device=x.device) / half)
    angles = torch.arange(x.shape[-2], device=x.device)[:, None] * inverse
    cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def rotated_as_complex_pairs(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions of neighbors `(x[2i], x[2i + 1])`, without complex numbers."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[-2])[:, None] * 10000.0 ** (-torch.arange(half) / half)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], -1)
    return turned.flatten(-2)


def attention(
    name: str, *inputs: Any, opset: int | None = None, rest: dict[str, Any] | None = None, **how: Any
) -> Layer:
    """A line for `scaled_dot_product_attention`, whose fourth input is a mask."""
    line: dict[str, Any] = {"opset": opset, **(rest or {})}
    if how.get("enable_gqa"):
        line["unexportable"] = {"torchscript": "it does not support enable_gqa"}
    if opset is None and "fully masked rows" in name:
        line["misexported"] = {"dynamo": "if all keys of a row are masked, the result is the mean of the values"}
        line["ours"] = "translation"
    if opset is not None and opset > 20:
        name += f", opset {opset}"
    return function(
        f"scaled_dot_product_attention, {name}",
        lambda q, k, v, *mask: F.scaled_dot_product_attention(q, k, v, *mask, **how),
        *inputs,
        **line,
    )


LAYERS = [
    *(
        line
        for opset in (None, 23)
        for line in (
            attention("plain", Q, K, V, opset=opset),
            attention("causal", Q, Q.flip(2), Q.flip(1), opset=opset, is_causal=True),
            attention("scale", Q, K, V, opset=opset, scale=0.3),
            attention("mask of bools", Q, K, V, MASK, opset=opset),
            attention("mask of bools, fully masked rows", Q, K, V, MASK & (torch.arange(5) != 2)[:, None], opset=opset),
            attention("mask of numbers", Q, K, V, f32(2, 1, 5, 6), opset=opset),
            attention("grouped queries", Q, f32(2, 2, 6, 8), f32(2, 2, 6, 8).flip(2), opset=opset, enable_gqa=True),
            attention(
                "half precision",
                f16(2, 4, 5, 8),
                f16(2, 4, 6, 8),
                f16(2, 4, 6, 8),
                opset=opset,
                rest={"tolerance": 4e-3},
            ),
        )
    ),
    attention(
        "causal, any length",
        Q,
        Q.flip(2),
        Q.flip(1),
        is_causal=True,
        rest={"dynamic": ({2: "time"},) * 3, "again": (f32(2, 4, 9, 8),) * 3},
    ),
    function("rotary positions", rotated, f32(2, 4, 5, 8)),
    function("rotary positions, interleaved pairs", rotated_as_complex_pairs, f32(2, 4, 5, 8)),
    function(
        "rotary positions, any length",
        rotated,
        f32(2, 4, 5, 8),
        dynamic=({2: "time"},),
        again=(f32(2, 4, 9, 8),),
    ),
    layer("attention of a language model", CausalAttention, X),
    layer("attention of a language model, rotary", lambda: CausalAttention(rotary=True), X),
    layer(
        "attention of a language model, any length",
        lambda: CausalAttention(rotary=True),
        X,
        dynamic=({0: "batch", 1: "time"},),
        again=(f32(3, 7, 16),),
    ),
    layer("attention, hand-written", HandWrittenAttention, X),
    layer("MultiheadAttention", SelfAttention, X),
    layer("MultiheadAttention, averaged weights", lambda: SelfAttention(needs_weights=True), X),
    layer("MultiheadAttention, padding mask", SelfAttention, X, PADDING),
    layer("MultiheadAttention, bias_kv, zero_attn", lambda: SelfAttention(add_bias_kv=True, add_zero_attn=True), X),
    layer(
        "MultiheadAttention, kdim and vdim",
        lambda: nn.MultiheadAttention(16, 4, kdim=6, vdim=7),
        f32(5, 2, 16),
        f32(4, 2, 6),
        f32(4, 2, 7),
    ),
    layer(
        "TransformerEncoderLayer",
        lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True),
        X,
        unexportable=TENSOR_IS_CAUSAL,
    ),
    layer(
        "TransformerEncoderLayer, norm_first, GELU",
        lambda: nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", norm_first=True),
        f32(5, 2, 16),
        unexportable=TENSOR_IS_CAUSAL,
    ),
    layer(
        "TransformerEncoder, 2 layers",
        lambda: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), 2, enable_nested_tensor=False
        ),
        X,
    ),
    layer(
        "TransformerDecoderLayer",
        lambda: nn.TransformerDecoderLayer(16, 4, 32, batch_first=True),
        X,
        f32(2, 7, 16),
        unexportable=TENSOR_IS_CAUSAL,
    ),
    layer(
        "Transformer",
        lambda: nn.Transformer(16, 2, 1, 1, 32, batch_first=True),
        X,
        f32(2, 3, 16),
        unexportable=TENSOR_IS_CAUSAL,
    ),
]
