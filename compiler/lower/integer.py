"""MatMulInteger, ConvInteger, QLinearMatMul, QLinearConv: 8-bit operands, 32-bit sums."""

from __future__ import annotations

import numpy as np

from compiler.ir.views.window import WindowView
from compiler.lower.conv import groups, spatial_axes
from compiler.lower.node import Node, lowers
from compiler.lower.padding import dilations, padding, strides
from compiler.plan import PlanBuilder, Value, ops


@lowers("MatMulInteger", newest=10)
def matmul_integer(node: Node, build: PlanBuilder) -> Value:
    """`MatMulInteger`; a vector of zero points has one number for each row of A, or for each column of B."""
    a_zero, b_zero = node.optional(2), node.optional(3)
    return build(ops.MatMulInteger(), node.input(0), node.input(1), _as_column(node, build, a_zero), b_zero)


@lowers("ConvInteger", newest=10)
def conv_integer(node: Node, build: PlanBuilder) -> Value:
    """`ConvInteger`."""
    op, _ = _conv(node)
    return build(op, node.input(0), node.input(1), node.optional(2), node.optional(3))


@lowers("QLinearMatMul", newest=21)
def qlinear_matmul(node: Node, build: PlanBuilder) -> Value:
    """`QLinearMatMul`: exact sums of products, scaled and rounded once."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = (node.input(index) for index in range(8))
    sums = build(ops.MatMulInteger(), a, b, _as_column(node, build, a_zero), b_zero)
    scales = [_float32(build, scale) for scale in (a_scale, b_scale, y_scale)]
    return build(ops.Requantize(), sums, _as_column(node, build, scales[0]), scales[1], scales[2], y_zero)


@lowers("QLinearConv", newest=10)
def qlinear_conv(node: Node, build: PlanBuilder) -> Value:
    """`QLinearConv`: exact sums of products and the bias, scaled and rounded once."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = (node.input(index) for index in range(8))
    op, axes = _conv(node)
    sums = build(op, x, w, x_zero, w_zero, node.optional(8))
    w_scale = build(ops.Reshape(allow_zero=False), w_scale, _integers(build, [-1] + [1] * axes))
    return build(ops.Requantize(), sums, x_scale, w_scale, y_scale, y_zero)


def _conv(node: Node) -> tuple[ops.ConvInteger, int]:
    """The convolution and its number of spatial axes."""
    window = WindowView.read(node)
    axes = spatial_axes(node, window)
    op = ops.ConvInteger(
        strides=strides(node, window, axes),
        dilations=dilations(node, window, axes),
        pads=padding(node, window, axes),
        groups=groups(node, window),
    )
    return op, axes


def _as_column(node: Node, build: PlanBuilder, values: Value | None) -> Value | None:
    """A vector with one value per row, as a column that broadcasts to the rows of a matrix."""
    if values is None or (values.rank is not None and values.rank > 1):
        return values
    if values.rank is None:
        node.refuse("CC0205", f"the rank of {node.op_type}'s scales or zero points is not known")
    return build(ops.Reshape(allow_zero=False), values, _integers(build, [-1, 1]))


def _float32(build: PlanBuilder, scale: Value) -> Value:
    return scale if scale.dtype == "float32" else build(ops.Cast(to="float32", round="Up", saturate=True), scale)


def _integers(build: PlanBuilder, numbers: list[int]) -> Value:
    return build.constant(np.array(numbers, np.int64))
