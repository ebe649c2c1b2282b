"""Functions and means of 8-bit codes, which the compiler creates."""

from __future__ import annotations

from typing import cast

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("QLinearBinary", newest=1, domain=PLAN_DOMAIN)
def qlinear_binary(node: Node, build: PlanBuilder) -> Value:
    """`QLinearBinary`; inputs: two operands, their scales and zero points, and those of the result."""
    function = cast(ops.QLinearFunction, node.string("function"))
    op = ops.QLinearBinary(function=function, low=node.int("low"), high=node.int("high"))
    return build(op, *(node.input(index) for index in range(8)))


@lowers("LookUp", newest=1, domain=PLAN_DOMAIN)
def look_up(node: Node, build: PlanBuilder) -> Value:
    """`LookUp`; inputs: codes, and the table of results."""
    return build(ops.LookUp(), node.input(0), node.input(1))


@lowers("QLinearGlobalAveragePool", newest=1, domain=PLAN_DOMAIN)
def qlinear_global_average_pool(node: Node, build: PlanBuilder) -> Value:
    """`QLinearGlobalAveragePool`; inputs: `[N, …, C]`, scale and two zero points."""
    return build(ops.QLinearGlobalAveragePool(), *(node.input(index) for index in range(4)))
