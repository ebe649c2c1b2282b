"""Matrix products of rounded numbers."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers
from compiler.lower.program import with_epilogue
from compiler.plan import PlanBuilder, Value, ops


@lowers("RoundedMatMul", newest=1, domain=PLAN_DOMAIN)
def rounded_matmul(node: Node, build: PlanBuilder) -> Value:
    """`RoundedMatMul` of `candle.plan`: rows in float32, and a matrix in bfloat16, transposed with `trans_w`."""
    epilogue, inputs = with_epilogue(node, 2)
    return build(ops.RoundedMatMul(trans_w=node.flag("trans_w", False), epilogue=epilogue), *inputs)
