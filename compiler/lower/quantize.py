"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: per tensor, per axis and per block."""

from __future__ import annotations

from typing import cast

from compiler.ir.views.quantize import QuantizeView
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops


@lowers("QuantizeLinear", newest=28)
def quantize_linear(node: Node, build: PlanBuilder) -> Value:
    """`QuantizeLinear` to the type of the zero point; without one, to `output_dtype`; without both, to uint8."""
    view = QuantizeView.read(node)
    x, scale, zero = node.input(0), node.input(1), node.optional(2)
    if zero is not None and view.to not in (None, zero.dtype):
        node.refuse("CC0202", f"output_dtype is {view.to}, but the zero point is {zero.dtype}")
    op = ops.QuantizeLinear(
        to=cast(ops.DType, zero.dtype if zero is not None else view.to or "uint8"),
        axis=view.axis,
        block=view.block,
        saturate=view.saturate,
        precision=_precision(node, view, scale),
    )
    return build(op, x, scale, zero)


remark(
    "QuantizeLinear",
    "Infinity becomes the largest quantized value, as in the standard; for float16, onnxruntime before 1.32 gives the "
    "smallest. A float16 quotient is rounded to float16, as in the standard's reference implementation; onnxruntime "
    "1.32 does so from version 23 of the operator.",
)


def _precision(node: Node, view: QuantizeView[Value], scale: Value) -> ops.DType:
    """The type that the quotient is rounded to: the attribute `precision`, or the scale's type."""
    precision = view.precision or (scale.dtype if scale.dtype in ("float16", "bfloat16") else "float32")
    if precision not in ("float32", "float16", "bfloat16"):
        node.refuse("CC0202", f"{node.op_type} cannot divide in {precision}")
    return cast(ops.DType, precision)


@lowers("DequantizeLinear", newest=28)
def dequantize_linear(node: Node, build: PlanBuilder) -> Value:
    """`DequantizeLinear` to `output_dtype`; without one, to the scale's type."""
    view, scale = QuantizeView.read(node), node.input(1)
    op = ops.DequantizeLinear(to=cast(ops.DType, view.to or scale.dtype), axis=view.axis, block=view.block)
    return build(op, node.input(0), scale, node.optional(2))


remark(
    "DequantizeLinear",
    "A matrix product with constant codes of 2, 4 or 8 bits in blocks first sums the products of a block, and then "
    "multiplies the sum by the scale. If such a sum exceeds float32, the result is infinite.",
)


@lowers("DynamicQuantizeLinear", newest=11)
def dynamic_quantize_linear(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`DynamicQuantizeLinear`; outputs: codes, scale and zero point."""
    return build(ops.DynamicQuantizeLinear(), node.input(0), outputs=3)
