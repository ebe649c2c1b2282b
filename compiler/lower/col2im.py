"""Col2Im."""

from __future__ import annotations

from compiler.ir.views.window import WindowView
from compiler.lower.node import Node, lowers
from compiler.lower.padding import dilations, explicit_pads, strides
from compiler.plan import PlanBuilder, Value, ops


@lowers("Col2Im", newest=18)
def col2im(node: Node, build: PlanBuilder) -> Value:
    """`Col2Im`. The op takes any number of spatial axes; `reject_3d` refuses three or more before."""
    window = WindowView.read(node)
    axes = _axes(node, window)
    op = ops.Col2Im(
        strides=strides(node, window, axes),
        dilations=dilations(node, window, axes),
        pads=explicit_pads(node, window, axes),
    )
    return build(op, node.input(0), node.input(1), node.input(2))


def _axes(node: Node, window: WindowView[Value]) -> int:
    """The number of spatial axes, from the length of the image's shape or of an attribute."""
    for value in (node.input(1), node.input(2)):
        if value.shape is not None and len(value.shape) != 1:
            node.refuse("CC0205", f"{value.name!r} of Col2Im is a list, found the shape {list(value.shape)}")
        if value.shape is not None and isinstance(value.shape[0], int):
            return value.shape[0]
    lengths = [len(numbers or ()) for numbers in (window.strides, window.dilations)]
    if not any(lengths):
        node.refuse("CC0205", "the number of Col2Im's spatial axes is not known")
    return max(lengths)
