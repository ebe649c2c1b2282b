"""Concat, Split: tensors joined and split along an axis."""

from __future__ import annotations

from compiler.ir.views.concat import ConcatView
from compiler.ir.views.split import SplitView
from compiler.lower.lists import ints
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Concat", newest=13)
def concat(node: Node, build: PlanBuilder) -> Value:
    """`Concat`."""
    return build(ops.Concat(axis=ConcatView.read(node).axis), *(node.input(index) for index in range(len(node.inputs))))


@lowers("Split", newest=18)
def split(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Split`."""
    view = SplitView.read(node)
    if view.parts not in (None, node.outputs):
        node.refuse("CC0202", f"Split has {node.outputs} outputs, but num_outputs is {view.parts}")
    if view.sizes is None and node.version < 18:
        _check_even(node, view.axis)
    return build(ops.Split(axis=view.axis), node.input(0), ints(build, view.sizes), outputs=node.outputs)


def _check_even(node: Node, axis: int) -> None:
    """Refuses parts of unequal sizes before version 18, if the node has no sizes."""
    shape = node.input(0).shape
    size = None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]
    if isinstance(size, int) and size % node.outputs:
        node.refuse("CC0202", f"{size} rows do not make {node.outputs} equal parts")
