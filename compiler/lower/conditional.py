"""Where and Clip."""

from __future__ import annotations

import numpy as np

from compiler.ir import dtypes
from compiler.ir.views.clip import ClipView
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

_GREATEST = float(np.finfo(np.float32).max)


@lowers("Where", newest=16)
def where(node: Node, build: PlanBuilder) -> Value:
    """`Where`."""
    return build(ops.Where(), node.input(0), node.input(1), node.input(2))


@lowers("Clip", newest=13)
def clip(node: Node, build: PlanBuilder) -> Value:
    """`Clip`; before version 11 the bounds are attributes."""
    view, x = ClipView.read(node), node.input(0)
    if node.version >= 11:
        return build(ops.Clip(), x, *(None if bound is None else bound.value for bound in (view.low, view.high)))
    pairs = (view.low, -_GREATEST), (view.high, _GREATEST)
    numbers = [default if bound is None else bound.number for bound, default in pairs]
    with np.errstate(over="ignore"):
        bounds = [np.array(number).astype(dtypes.numpy_dtype(x.dtype)) for number in numbers]
    return build(ops.Clip(), x, *map(build.constant, bounds))


remark(
    "Clip",
    "NaN stays NaN. An absent bound has no effect; in onnxruntime it turns infinity into the largest number.",
)
