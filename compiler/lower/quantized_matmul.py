"""Matrix products whose operands are quantized to 8 bits."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers
from compiler.lower.program import with_epilogue
from compiler.plan import PlanBuilder, Value, ops


@lowers("QuantizedMatMul", newest=1, domain=PLAN_DOMAIN)
def quantized_matmul(node: Node, build: PlanBuilder) -> Value:
    """`QuantizedMatMul` of `candle.plan`: rows in float32, and a transposed matrix of codes with its scales."""
    epilogue, inputs = with_epilogue(node, 3)
    return build(ops.QuantizedMatMul(epilogue=epilogue), *inputs)
