"""MatMul and Gemm."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.product import ProductView
from compiler.lower.node import Node, lowers
from compiler.lower.program import with_epilogue
from compiler.plan import PlanBuilder, Value, ops


@lowers("MatMul", newest=13)
@lowers("MatMul", newest=1, domain=PLAN_DOMAIN)
def matmul(node: Node, build: PlanBuilder) -> Value:
    """`MatMul`; the operator of `candle.plan` also takes transposed matrices (`trans_a`, `trans_b`)."""
    view = ProductView.read(node)
    epilogue, inputs = with_epilogue(node, 2)
    return build(ops.MatMul(trans_a=view.trans_a, trans_b=view.trans_b, epilogue=epilogue), *inputs)


@lowers("Gemm", newest=13)
@lowers("Gemm", newest=1, domain=PLAN_DOMAIN)
def gemm(node: Node, build: PlanBuilder) -> Value:
    """`Gemm`; the attribute `broadcast` of versions before 7 changes no result."""
    view = ProductView.read(node)
    epilogue, inputs = with_epilogue(node, 3)
    op = ops.Gemm(
        alpha=view.alpha,
        beta=view.beta,
        trans_a=view.trans_a,
        trans_b=view.trans_b,
        epilogue=epilogue,
    )
    return build(op, *inputs)
