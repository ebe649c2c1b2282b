"""DeformConv over two spatial axes."""

from __future__ import annotations

from compiler.lower.conv import check_kernel, groups
from compiler.lower.node import Node, lowers
from compiler.lower.padding import window_ints
from compiler.plan import PlanBuilder, Value, ops


@lowers("DeformConv", newest=22)
def deform_conv(node: Node, build: PlanBuilder) -> Value:
    """`DeformConv`."""
    weights, kernel = node.input(1), node.ints("kernel_shape", None)
    if kernel and weights.shape is not None:
        check_kernel(node, kernel, weights.shape[2:])
    pads, offset_groups = node.ints("pads", [0] * 4), node.int("offset_group", 1)
    if len(pads) != 4 or min(pads) < 0 or offset_groups < 1:
        node.refuse("CC0202", f"DeformConv cannot have pads {pads} and {offset_groups} groups of offsets")
    op = ops.DeformConv(
        strides=window_ints(node, "strides", 2),
        dilations=window_ints(node, "dilations", 2),
        pads=[[pads[0], pads[2]], [pads[1], pads[3]]],
        groups=groups(node),
        offset_groups=offset_groups,
    )
    return build(op, node.input(0), weights, node.input(2), node.optional(3), node.optional(4))
