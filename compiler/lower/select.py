"""Trilu, Compress, NonZero, Unique: elements selected by position, condition or value."""

from __future__ import annotations

from compiler.ir.views.triangle import TriangleView
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops


@lowers("Trilu", newest=14)
def trilu(node: Node, build: PlanBuilder) -> Value:
    """`Trilu`."""
    return build(ops.Trilu(upper=TriangleView.read(node).is_upper), node.input(0), node.optional(1))


@lowers("Compress", newest=28)
def compress(node: Node, build: PlanBuilder) -> Value:
    """`Compress`."""
    return build(ops.Compress(axis=node.int("axis", None)), node.input(0), node.input(1))


@lowers("NonZero", newest=13)
def non_zero(node: Node, build: PlanBuilder) -> Value:
    """`NonZero`."""
    return build(ops.NonZero(), node.input(0))


@lowers("Unique", newest=28)
def unique(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Unique`."""
    op = ops.Unique(axis=node.int("axis", None), sorted=node.flag("sorted", True))
    return build(op, node.input(0), outputs=node.outputs)


remark(
    "Unique",
    "All NaNs are one value, which is larger than all numbers, as in NumPy; in onnxruntime, NaN and a number may count "
    "as equal.",
)
