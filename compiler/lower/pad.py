"""Pad, CenterCropPad: elements added around a tensor, or removed."""

from __future__ import annotations

import numpy as np

from compiler.ir import dtypes
from compiler.ir.views.pad import PadView
from compiler.lower.lists import ints
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_MODES: dict[str, ops.PadMode] = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@lowers("Pad", newest=25)
def pad(node: Node, build: PlanBuilder) -> Value:
    """`Pad`."""
    x, view = node.input(0), PadView.read(node)
    mode, value = _MODES.get(view.mode), view.value
    if mode is None:
        node.refuse("CC0202", f"Pad has no mode {view.mode!r}")
    pads = ints(build, view.pads) or node.input(1)
    if mode != "constant":
        value = None
    elif view.pads is not None and view.pads.is_attribute:
        value = build.constant(np.array(view.number, dtypes.numpy_dtype(x.dtype)))
    elif value is None and x.dtype == "string":
        value = build.constant(np.array("", object))
    return build(ops.Pad(mode=mode), x, pads, value, ints(build, view.axes))


@lowers("CenterCropPad", newest=18)
def center_crop_pad(node: Node, build: PlanBuilder) -> Value:
    """`CenterCropPad`."""
    return build(ops.CenterCropPad(axes=node.ints("axes", None)), node.input(0), node.input(1))
