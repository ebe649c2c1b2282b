"""Pad, CenterCropPad: elements added around a tensor, or cut off."""

from __future__ import annotations

import numpy as np

from compiler.ir import dtypes
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_MODES: dict[str, ops.PadMode] = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@lowers("Pad", newest=25)
def pad(node: Node, build: PlanBuilder) -> Value:
    """`Pad`: attributes before 11, inputs from 11 on."""
    x, mode = node.input(0), _MODES.get(name := node.string("mode", "constant"))
    if mode is None:
        node.refuse("CC0202", f"Pad has no mode {name!r}")
    if node.version >= 11:
        pads, value, axes = node.input(1), node.optional(2), node.optional(3)
    else:
        pads, axes = build.constant(np.array(node.ints("pads"), np.int64)), None
        value = build.constant(np.array(node.float("value", 0.0), dtypes.numpy_dtype(x.dtype)))
    if mode != "constant":
        value = None
    elif value is None and x.dtype == "string":
        value = build.constant(np.array("", object))
    return build(ops.Pad(mode=mode), x, pads, value, axes)


@lowers("CenterCropPad", newest=18)
def center_crop_pad(node: Node, build: PlanBuilder) -> Value:
    """`CenterCropPad`."""
    return build(ops.CenterCropPad(axes=node.ints("axes", None)), node.input(0), node.input(1))
