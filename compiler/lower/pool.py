"""MaxPool, AveragePool, LpPool, MaxUnpool."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.lower.padding import padding, window_ints
from compiler.plan import PlanBuilder, Value, ops


def _window(node: Node) -> ops.PoolWindow:
    kernel = node.ints("kernel_shape")
    axes = len(kernel)
    return ops.PoolWindow(
        kernel=window_ints(node, "kernel_shape", axes),
        strides=window_ints(node, "strides", axes),
        dilations=window_ints(node, "dilations", axes),
        padding=padding(node, axes),
        ceil=node.int("ceil_mode", 0) != 0,
    )


@lowers("MaxPool", newest=22)
def max_pool(node: Node, build: PlanBuilder) -> Value | tuple[Value, ...]:
    """`MaxPool`, with or without indices."""
    op = ops.MaxPool(window=_window(node), column_major=node.int("storage_order", 0) != 0)
    return build(op, node.input(0), outputs=2) if node.uses_output(1) else build(op, node.input(0))


@lowers("AveragePool", newest=22)
def average_pool(node: Node, build: PlanBuilder) -> Value:
    """`AveragePool`."""
    op = ops.AveragePool(window=_window(node), count_padding=node.int("count_include_pad", 0) != 0)
    return build(op, node.input(0))


@lowers("LpPool", newest=22)
def lp_pool(node: Node, build: PlanBuilder) -> Value:
    """`LpPool`."""
    return build(ops.LpPool(window=_window(node), p=_exponent(node)), node.input(0))


def _exponent(node: Node) -> int:
    p = node.int("p", 2)
    if p < 1:
        node.refuse("CC0202", f"{node.op_type}'s exponent is {p}, which is not positive")
    return p


@lowers("MaxUnpool", newest=22)
def max_unpool(node: Node, build: PlanBuilder) -> Value:
    """`MaxUnpool`, with or without the output's shape."""
    axes = len(node.ints("kernel_shape"))
    pads = node.ints("pads", [0] * (2 * axes))
    if len(pads) != 2 * axes or min(pads, default=0) < 0:
        node.refuse("CC0202", f"MaxUnpool's pads {pads} are not one before and one after each of {axes} axes")
    op = ops.MaxUnpool(
        kernel=window_ints(node, "kernel_shape", axes),
        strides=window_ints(node, "strides", axes),
        pads=[[before, after] for before, after in zip(pads[:axes], pads[axes:], strict=True)],
    )
    return build(op, node.input(0), node.input(1), node.optional(2))
