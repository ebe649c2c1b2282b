"""DeformConv over two spatial axes."""

from __future__ import annotations

from compiler.ir.views.window import WindowView
from compiler.lower.conv import check_kernel, groups
from compiler.lower.node import Node, lowers
from compiler.lower.padding import dilations, explicit_pads, strides
from compiler.plan import PlanBuilder, Value, ops


@lowers("DeformConv", newest=22)
def deform_conv(node: Node, build: PlanBuilder) -> Value:
    """`DeformConv`."""
    window, offset_groups = WindowView.read(node), node.int("offset_group", 1)
    check_kernel(node, window)
    if offset_groups < 1:
        node.refuse("CC0202", f"DeformConv cannot have {offset_groups} groups of offsets")
    op = ops.DeformConv(
        strides=strides(node, window, 2),
        dilations=dilations(node, window, 2),
        pads=explicit_pads(node, window, 2),
        groups=groups(node, window),
        offset_groups=offset_groups,
    )
    return build(op, node.input(0), node.input(1), node.input(2), node.optional(3), node.optional(4))
