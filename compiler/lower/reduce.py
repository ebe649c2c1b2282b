"""ReduceSum and its siblings: sums, means, extrema and norms over axes."""

from __future__ import annotations

from typing import cast

from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

_SIBLINGS = {"L1": 18, "L2": 18, "LogSum": 28, "LogSumExp": 28, "Max": 20, "Mean": 18, "Min": 20, "Prod": 18}
_SIBLINGS |= {"Sum": 13, "SumSquare": 18}


def reduce(node: Node, build: PlanBuilder) -> Value:
    """`Reduce…`: axes from the attribute (ReduceSum before 13, the others before 18) or the input."""
    axes, computed = node.ints("axes", None), None
    noop = node.flag("noop_with_empty_axes", False)
    if node.version >= (13 if node.op_type == "ReduceSum" else 18):
        known = node.constant(1)
        computed = node.optional(1) if known is None else None
        axes = None if known is None else [int(axis) for axis in known.reshape(-1)]
    elif noop:
        node.refuse("CC0202", f"{node.op_type}-{node.version} has no attribute noop_with_empty_axes")
    if computed is None and not axes:
        axes = [] if noop else None
    function = cast(ops.Reduction, node.op_type.removeprefix("Reduce"))
    op = ops.Reduce(function=function, keepdims=node.flag("keepdims", True), noop_with_empty_axes=noop, axes=axes)
    return build(op, node.input(0), computed)


for _sibling, _newest in _SIBLINGS.items():
    lowers(f"Reduce{_sibling}", newest=_newest)(reduce)
remark("ReduceMax", "NaN is the largest, as in NumPy; in onnxruntime, the result depends on the position of NaN.")
remark("ReduceMin", "NaN is the smallest, as in NumPy; in onnxruntime, the result depends on the position of NaN.")
