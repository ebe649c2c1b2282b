"""Shape, Size: dimensions as values."""

from __future__ import annotations

from compiler.ir.views.shape import ShapeView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Shape", newest=25)
def shape(node: Node, build: PlanBuilder) -> Value:
    """`Shape`."""
    view = ShapeView.read(node)
    return build(ops.Shape(start=view.start, end=view.end), node.input(0))


@lowers("Size", newest=25)
def size(node: Node, build: PlanBuilder) -> Value:
    """`Size`."""
    return build(ops.Size(), node.input(0))
