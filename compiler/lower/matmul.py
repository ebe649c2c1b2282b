"""MatMul and Gemm."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers
from compiler.lower.program import with_epilogue
from compiler.plan import PlanBuilder, Value, ops


@lowers("MatMul", newest=13)
@lowers("MatMul", newest=1, domain=PLAN_DOMAIN)
def matmul(node: Node, build: PlanBuilder) -> Value:
    """`MatMul`; the operator of `candle.plan` also takes transposed matrices (`trans_a`, `trans_b`)."""
    epilogue, inputs = with_epilogue(node, 2)
    trans_a, trans_b = (node.domain == PLAN_DOMAIN and node.flag(name, False) for name in ("trans_a", "trans_b"))
    return build(ops.MatMul(trans_a=trans_a, trans_b=trans_b, epilogue=epilogue), *inputs)


@lowers("Gemm", newest=13)
@lowers("Gemm", newest=1, domain=PLAN_DOMAIN)
def gemm(node: Node, build: PlanBuilder) -> Value:
    """`Gemm`; the attribute `broadcast` of versions before 7 changes no result."""
    epilogue, inputs = with_epilogue(node, 3)
    op = ops.Gemm(
        alpha=node.float("alpha", 1.0),
        beta=node.float("beta", 1.0),
        trans_a=node.flag("transA", False),
        trans_b=node.flag("transB", False),
        epilogue=epilogue,
    )
    return build(op, *inputs)
