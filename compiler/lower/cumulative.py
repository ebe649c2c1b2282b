"""CumSum, CumProd: running totals along an axis."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("CumSum", newest=14)
def cum_sum(node: Node, build: PlanBuilder) -> Value:
    """`CumSum`."""
    return _cumulative(node, build, "Sum")


@lowers("CumProd", newest=26)
def cum_prod(node: Node, build: PlanBuilder) -> Value:
    """`CumProd`."""
    return _cumulative(node, build, "Prod")


def _cumulative(node: Node, build: PlanBuilder, function: ops.Accumulation) -> Value:
    op = ops.Cumulative(function=function, exclusive=node.flag("exclusive", False), reverse=node.flag("reverse", False))
    return build(op, node.input(0), node.input(1))
