"""Slice: parts of a tensor."""

from __future__ import annotations

from compiler.ir.views.slice import SliceView
from compiler.lower.lists import ints
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Slice", newest=13)
def slice_(node: Node, build: PlanBuilder) -> Value:
    """`Slice`."""
    view = SliceView.read(node)
    starts, ends = ints(build, view.starts) or node.input(1), ints(build, view.ends) or node.input(2)
    return build(ops.Slice(), node.input(0), starts, ends, ints(build, view.axes), ints(build, view.steps))
