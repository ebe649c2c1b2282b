"""Convolutions and products of 8-bit codes, which the compiler creates."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.window import WindowView
from compiler.lower.conv import groups, spatial_axes
from compiler.lower.node import Node, lowers
from compiler.lower.padding import dilations, padding, strides
from compiler.plan import PlanBuilder, Value, ops


@lowers("QLinearConv", newest=1, domain=PLAN_DOMAIN)
def qlinear_conv(node: Node, build: PlanBuilder) -> Value:
    """`QLinearConv`; inputs: `[N, …, C]`, weights, scale, three zero points and an optional bias."""
    window = WindowView.read(node)
    axes = spatial_axes(node, window)
    op = ops.QLinearConv(
        strides=strides(node, window, axes),
        dilations=dilations(node, window, axes),
        pads=padding(node, window, axes),
        groups=groups(node, window),
        low=node.int("low"),
        high=node.int("high"),
    )
    return build(op, *(node.optional(index) for index in range(7)))


@lowers("QLinearMatMul", newest=1, domain=PLAN_DOMAIN)
def qlinear_matmul(node: Node, build: PlanBuilder) -> Value:
    """`QLinearMatMul`; inputs: two matrices, scale, three zero points and an optional bias."""
    op = ops.QLinearMatMul(low=node.int("low"), high=node.int("high"))
    return build(op, *(node.optional(index) for index in range(7)))
