"""Det."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Det", newest=22)
def det(node: Node, build: PlanBuilder) -> Value:
    """`Det`."""
    return build(ops.Det(), node.input(0))
