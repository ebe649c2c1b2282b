"""MatMul and Gemm."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("MatMul", newest=13)
def matmul(node: Node, build: PlanBuilder) -> Value:
    """`MatMul`."""
    return build(ops.MatMul(epilogue=None), node.input(0), node.input(1))


@lowers("Gemm", newest=13)
def gemm(node: Node, build: PlanBuilder) -> Value:
    """`Gemm`; before version 7 `C` has to be broadcast expressly, which asks for nothing more."""
    op = ops.Gemm(
        alpha=node.float("alpha", 1.0),
        beta=node.float("beta", 1.0),
        trans_a=bool(node.int("transA", 0)),
        trans_b=bool(node.int("transB", 0)),
        epilogue=None,
    )
    return build(op, node.input(0), node.input(1), node.optional(2))
