"""Fused elementwise functions, which the compiler creates."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers
from compiler.lower.program import program_of
from compiler.plan import PlanBuilder, Value, ops


@lowers("Elementwise", newest=1, domain=PLAN_DOMAIN)
def elementwise(node: Node, build: PlanBuilder) -> Value:
    """`Elementwise`: the graph `body`, whose inputs are the node's inputs."""
    program = program_of(node.graph("body"), range(len(node.inputs)), has_result=False)
    return build(ops.Elementwise(program=program), *(node.input(index) for index in range(len(node.inputs))))
