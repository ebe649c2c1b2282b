"""Einsum."""

from __future__ import annotations

from compiler.ir.views.einsum import EinsumView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Einsum", newest=28)
def einsum(node: Node, build: PlanBuilder) -> Value:
    """`Einsum`."""
    inputs = [node.input(index) for index in range(len(node.inputs))]
    return build(ops.Einsum(equation=EinsumView.read(node).equation), *inputs)
