"""Expand, Tile: elements repeated along axes."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Expand", newest=13)
def expand(node: Node, build: PlanBuilder) -> Value:
    """`Expand`."""
    return build(ops.Expand(), node.input(0), node.input(1))


@lowers("Tile", newest=13)
def tile(node: Node, build: PlanBuilder) -> Value:
    """`Tile`."""
    return build(ops.Tile(), node.input(0), node.input(1))
