"""Gather, GatherElements, GatherND: elements and rows selected by index."""

from __future__ import annotations

from compiler.ir.views.gather import GatherNdView, GatherView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Gather", newest=13)
def gather(node: Node, build: PlanBuilder) -> Value:
    """`Gather`."""
    return build(ops.Gather(axis=GatherView.read(node).axis), node.input(0), node.input(1))


@lowers("GatherElements", newest=13)
def gather_elements(node: Node, build: PlanBuilder) -> Value:
    """`GatherElements`."""
    return build(ops.GatherElements(axis=GatherView.read(node).axis), node.input(0), node.input(1))


@lowers("GatherND", newest=13)
def gather_nd(node: Node, build: PlanBuilder) -> Value:
    """`GatherND`."""
    count = GatherNdView.read(node).batch_axes
    if count < 0:
        node.refuse("CC0202", f"batch_dims {count} is negative")
    return build(ops.GatherNd(batch_dims=count), node.input(0), node.input(1))
