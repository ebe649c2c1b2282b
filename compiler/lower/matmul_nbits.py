"""Matrix products with weights of few bits."""

from __future__ import annotations

from compiler.ir.graph import PLAN_DOMAIN
from compiler.lower.node import Node, lowers
from compiler.lower.program import with_epilogue
from compiler.plan import PlanBuilder, Value, ops


@lowers("MatMulNBits", newest=1, domain=PLAN_DOMAIN)
def matmul_nbits(node: Node, build: PlanBuilder) -> Value:
    """`MatMulNBits` of `candle.plan`: codes `[N, blocks, bytes]`, scales and zero points `[N, blocks]`."""
    epilogue, inputs = with_epilogue(node, 4)
    op = ops.MatMulNBits(
        k=node.int("K"),
        n=node.int("N"),
        bits=node.int("bits"),
        block=node.int("block_size"),
        rounds_a=node.int("rounds_a", 0) != 0,
        epilogue=epilogue,
    )
    return build(op, *inputs)
