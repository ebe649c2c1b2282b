"""Caches whose rows are written one after another."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("AppendRows", newest=1, domain=PLAN_DOMAIN)
def append_rows(node: Node, build: PlanBuilder) -> Value:
    """`AppendRows` of `candle.plan`: a cache, new rows, the numbers of rows before them, and the total number."""
    return build(ops.AppendRows(), *(node.input(index) for index in range(4)))
