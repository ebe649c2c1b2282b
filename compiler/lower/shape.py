"""Shape, Size: dimensions as values."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Shape", newest=25)
def shape(node: Node, build: PlanBuilder) -> Value:
    """`Shape`."""
    return build(ops.Shape(start=node.int("start", 0), end=node.int("end", None)), node.input(0))


@lowers("Size", newest=25)
def size(node: Node, build: PlanBuilder) -> Value:
    """`Size`."""
    return build(ops.Size(), node.input(0))
