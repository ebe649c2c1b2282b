"""The heads of attention, and the call of ONNX's Attention."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import END, Body, Size
from compiler.contrib.expansion.node import Node

__all__ = ["add_biases", "attend", "merge_heads", "scale_of", "split_heads"]


def split_heads(new: Body, value: ir.Value, heads: int, rows: Size = 0) -> ir.Value:
    """`[B, S, heads · H]` → `[B, heads, S, H]`. S must be `rows`, if it is given."""
    shape = value.shape
    width = shape[-1] if shape is not None else None
    size: Size = width // heads if isinstance(width, int) else -1
    return new.transpose(new.reshape(value, 0, rows, heads, size), 0, 2, 1, 3)


def merge_heads(new: Body, value: ir.Value) -> ir.Value:
    """`[B, heads, S, H]` → `[B, S, heads · H]`."""
    return new.reshape(new.transpose(value, 0, 2, 1, 3), 0, 0, -1)


def add_biases(node: Node, new: Body, index: int, values: tuple[ir.Value, ...]) -> tuple[ir.Value, ...]:
    """Q, K and V of three dimensions, or only Q, plus their slices of the bias `[D + D + Dv]` in input `index`."""
    bias = node.optional(index)
    if bias is None:
        return values
    width = node.size(0, "query", 2)
    slices = (new.slice(bias, 0, start, end) for start, end in pairwise((0, width, 2 * width, END)))
    return tuple(new.op("Add", value, each) for value, each in zip(values, slices, strict=False))


def scale_of(node: Node) -> dict[str, Any]:
    """The attribute `scale` for Attention. Zero stands for the default, `1 / √H`."""
    scale = node.float("scale", 0.0)
    return {"scale": scale} if scale else {}


def attend(
    new: Body, qkv: tuple[ir.Value, ir.Value, ir.Value], *others: ir.Value | None, outputs: int = 1, **options: Any
) -> list[ir.Value]:
    """The outputs of Attention. `others` are the mask, the past key, the past value and the number of visible keys."""
    return list(new.op("Attention", *qkv, *others, outputs=outputs, **options))
