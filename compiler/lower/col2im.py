"""Col2Im."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.lower.padding import window_ints
from compiler.plan import PlanBuilder, Value, ops


@lowers("Col2Im", newest=18)
def col2im(node: Node, build: PlanBuilder) -> Value:
    """`Col2Im`. The op takes any number of spatial axes; `reject_3d` refuses three or more before."""
    axes = _axes(node)
    pads = node.ints("pads", [0] * (2 * axes))
    if len(pads) != 2 * axes or min(pads, default=0) < 0:
        node.refuse("CC0202", f"Col2Im's pads {pads} are not one before and one after each of {axes} axes")
    op = ops.Col2Im(
        strides=window_ints(node, "strides", axes),
        dilations=window_ints(node, "dilations", axes),
        pads=[[before, after] for before, after in zip(pads[:axes], pads[axes:], strict=True)],
    )
    return build(op, node.input(0), node.input(1), node.input(2))


def _axes(node: Node) -> int:
    """The number of spatial axes, from the length of the image's shape or of an attribute."""
    for value in (node.input(1), node.input(2)):
        if value.shape is not None and len(value.shape) != 1:
            node.refuse("CC0205", f"{value.name!r} of Col2Im is a list, found the shape {list(value.shape)}")
        if value.shape is not None and isinstance(value.shape[0], int):
            return value.shape[0]
    lengths = [len(node.ints(name, [])) for name in ("strides", "dilations")]
    if not any(lengths):
        node.refuse("CC0205", "the number of Col2Im's spatial axes is not known")
    return max(lengths)
