"""GroupNorm and SkipGroupNorm."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []


@expands("GroupNorm")
def group_norm(node: Node, new: Body) -> ir.Value:
    """`GroupNormalization` of `[N, H, W, C]`, or of `[N, C, H, W]` without `channels_last`, then SiLU if asked."""
    node.rank(0, "X", 4)
    return _normalized(node, new, new.upcast(node.input(0)))


@expands("SkipGroupNorm")
def skip_group_norm(node: Node, new: Body) -> tuple[ir.Value, ir.Value]:
    """`GroupNorm(X + skip + bias)`, and the sum. The skip is X's shape, `[N, 1, 1, C]` or `[N, C]`."""
    node.rank(0, "X", 4)
    is_last = node.flag("channels_last", True)
    skip, bias = new.upcast(node.input(3)), node.optional(4)
    if node.rank(3, "skip", 2, 4) == 2:
        skip = new.unsqueeze(skip, *((1, 2) if is_last else (2, 3)))
    if bias is not None:
        bias = new.upcast(bias) if is_last else new.unsqueeze(new.upcast(bias), 1, 2)
    total = new.total(new.upcast(node.input(0)), skip, bias)
    return _normalized(node, new, total), new.cast(total, node.dtype(0, "X"), FLOAT)


def _normalized(node: Node, new: Body, x: ir.Value) -> ir.Value:
    """The normalized x, which is float32, in the type of the node's first input."""
    dtype, activation = node.dtype(0, "X", FLOAT, *HALVES), node.int("activation")
    if activation not in (0, 1):
        node.refuse("CC0202", f"{node.op_type}'s attribute activation is {activation}, neither 0 nor 1")
    is_last = node.flag("channels_last", True)
    x = new.transpose(x, 0, 3, 1, 2) if is_last else x
    scales = (new.upcast(node.input(index)) for index in (1, 2))
    options: dict[str, Any] = {"num_groups": node.positive("groups"), "epsilon": node.float("epsilon", 1e-5)}
    y = new.op("GroupNormalization", x, *scales, **options)
    y = new.op("Swish", y) if activation else y
    return new.cast(new.transpose(y, 0, 2, 3, 1) if is_last else y, dtype, FLOAT)
