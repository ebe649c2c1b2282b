"""GridSample."""

from __future__ import annotations

from compiler.ir.views.grid_sample import GridSampleView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_MODES: dict[str, ops.Sampling] = {
    "nearest": "Nearest",
    "linear": "Linear",
    "cubic": "Cubic",
}
_PADDING: dict[str, ops.Outside] = {"zeros": "Zeros", "border": "Border", "reflection": "Reflection"}


@lowers("GridSample", newest=22)
def grid_sample(node: Node, build: PlanBuilder) -> Value:
    """`GridSample`."""
    view = GridSampleView.read(node)
    if view.mode not in _MODES or view.padding not in _PADDING:
        node.refuse("CC0202", f"GridSample has no mode {view.mode!r} with padding {view.padding!r}")
    op = ops.GridSample(mode=_MODES[view.mode], outside=_PADDING[view.padding], align_corners=view.align_corners)
    return build(op, node.input(0), node.input(1))
