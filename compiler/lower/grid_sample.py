"""GridSample."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_MODES: dict[str, ops.Sampling] = {
    "nearest": "Nearest",
    "linear": "Linear",
    "bilinear": "Linear",
    "cubic": "Cubic",
    "bicubic": "Cubic",
}
_PADDING: dict[str, ops.Outside] = {"zeros": "Zeros", "border": "Border", "reflection": "Reflection"}


@lowers("GridSample", newest=22)
def grid_sample(node: Node, build: PlanBuilder) -> Value:
    """`GridSample`; version 16 calls the modes bilinear and bicubic."""
    mode, padding = node.string("mode", "linear"), node.string("padding_mode", "zeros")
    if mode not in _MODES or padding not in _PADDING:
        node.refuse("CC0202", f"GridSample has no mode {mode!r} with padding {padding!r}")
    op = ops.GridSample(mode=_MODES[mode], outside=_PADDING[padding], align_corners=node.flag("align_corners", False))
    return build(op, node.input(0), node.input(1))
