"""Sums with a bias, and the functions after them: BiasAdd, BiasSoftmax, BiasSplitGelu."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []


@expands("BiasAdd")
def bias_add(node: Node, new: Body) -> ir.Value:
    """`X + bias + skip`, for X and skip `[B, S, C]` and a bias `[C]`."""
    return new.total(node.input(0), node.input(1), node.input(2))


@expands("BiasSoftmax")
def bias_softmax(node: Node, new: Body) -> ir.Value:
    """Softmax of `data + bias` over all axes from `axis`, together.

    The bias has the rank of the data. It has one slice for the axes 0 to `axis` - 1, or for the last of these axes
    (`is_inner_broadcast`); the sizes 1 of its shape show the same.
    """
    node.flag("is_inner_broadcast", False)
    rank = node.rank(0, "data")
    node.rank(1, "bias", rank)
    axis = node.int("axis", 1)
    return new.op("Softmax", new.total(node.input(0), node.input(1)), axis=axis, version=11)


@expands("BiasSplitGelu")
def bias_split_gelu(node: Node, new: Body) -> ir.Value:
    """`L · Gelu(R)` of the left half L and the right half R of the last axis of `X + bias`; X is `[B, S, D]`."""
    node.rank(0, "X", 3)
    half = node.split_size(0, "X", 2, 2)
    left, right = new.split(new.total(node.input(0), node.input(1)), 2, half, half)
    return new.op("Mul", left, new.op("Gelu", right))
