"""TopK, ArgMax, ArgMin: largest and smallest elements along an axis."""

from __future__ import annotations

import numpy as np

from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops


@lowers("TopK", newest=24)
def top_k(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`TopK`; k is an attribute before version 10, and an input from it on.

    With `sorted = 0`, the standard leaves the order open: the op sorts anyway, and onnxruntime returns another order.
    """
    k = node.input(1) if node.version >= 10 else build.constant(np.array([node.int("k")], np.int64))
    node.flag("sorted", True)
    op = ops.TopK(axis=node.int("axis", -1), largest=node.flag("largest", True))
    return build(op, node.input(0), k, outputs=2)


remark(
    "TopK",
    "NaN is larger than all numbers, as in NumPy and PyTorch; in onnxruntime before 1.32, the result depends on the "
    "position of NaN.",
)


@lowers("ArgMax", newest=13)
def arg_max(node: Node, build: PlanBuilder) -> Value:
    """`ArgMax`."""
    return _arg_reduce(node, build, "ArgMax")


@lowers("ArgMin", newest=13)
def arg_min(node: Node, build: PlanBuilder) -> Value:
    """`ArgMin`."""
    return _arg_reduce(node, build, "ArgMin")


def _arg_reduce(node: Node, build: PlanBuilder, function: ops.ArgReduction) -> Value:
    op = ops.ArgReduce(
        function=function,
        axis=node.int("axis", 0),
        keepdims=node.flag("keepdims", True),
        select_last_index=node.flag("select_last_index", False),
    )
    return build(op, node.input(0))
