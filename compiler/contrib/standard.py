"""Operators that the standard has too: ExpandDims, GridSample, Pad, Range, Trilu, Unique."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import INT64, Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []


@expands("ExpandDims")
def expand_dims(node: Node, new: Body) -> ir.Value:
    """X with a new axis of size 1."""
    axis = node.constant(1)
    if axis is not None and axis.size == 1:
        return new.unsqueeze(node.input(0), int(axis.item()))
    return new.op("Unsqueeze", node.input(0), new.reshape(new.op("Cast", node.input(1), to=INT64), 1))


@expands("Trilu")
def trilu(node: Node, new: Body) -> ir.Value:
    """`Trilu` of the standard."""
    return new.op("Trilu", node.input(0), node.optional(1), upper=int(node.flag("upper", True)))


@expands("Pad")
def pad(node: Node, new: Body) -> ir.Value:
    """`Pad` of the standard, whose `pads` may be `[1, 2 · rank]`, and whose value may be `[1]`."""
    value = node.optional(2)
    item = value and new.op("Reshape", value, new.numbers())
    return new.op("Pad", node.input(0), new.reshape(node.input(1), -1), item, mode=node.string("mode", "constant"))


@expands("Range")
def range_(node: Node, new: Body) -> ir.Value:
    """The numbers from `start` to `limit` (exclusive) in steps of `delta`, or of 1."""
    bounds = [new.op("Reshape", node.input(index), new.numbers()) for index in range(2)]
    delta = node.optional(2)
    step = new.scalar(1, node.dtype(0, "start")) if delta is None else new.op("Reshape", delta, new.numbers())
    return new.op("Range", *bounds, step)


@expands("Unique")
def unique(node: Node, new: Body) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The different elements of x `[n]` in order of their first place; the index of each element; their counts."""
    node.rank(0, "x", 1)
    y, _, index, counts = new.op("Unique", node.input(0), sorted=0, outputs=4)
    return y, index, counts


@expands("GridSample")
def grid_sample(node: Node, new: Body) -> ir.Value:
    """`GridSample` of the standard's version 16, for images `[N, C, H, W]`."""
    options: dict[str, Any] = {
        "mode": node.string("mode", "bilinear"),
        "padding_mode": node.string("padding_mode", "zeros"),
        "align_corners": int(node.flag("align_corners", False)),
    }
    y: ir.Value = new.op("GridSample", node.input(0), node.input(1), version=16, **options)
    return y
