"""ReduceSum and the other reductions: sums, means, extrema and norms over axes."""

from __future__ import annotations

from typing import cast

from compiler.ir.views.reduce import ReduceView, moved_in
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

_SIBLINGS = {"L1": 18, "L2": 18, "LogSum": 28, "LogSumExp": 28, "Max": 20, "Mean": 18, "Min": 20, "Prod": 18}
_SIBLINGS |= {"Sum": 13, "SumSquare": 18}


def reduce(node: Node, build: PlanBuilder) -> Value:
    """`Reduce…`."""
    view = ReduceView.read(node)
    known = () if view.axes is None else view.axes.known
    computed = view.axes.value if view.axes is not None and known is None else None
    noop = view.keeps_without_axes
    if noop and node.version < moved_in(node.op_type):
        node.refuse("CC0202", f"{node.op_type}-{node.version} has no attribute noop_with_empty_axes")
    axes = None if known is None or not (known or noop) else list(known)
    function = cast(ops.Reduction, node.op_type.removeprefix("Reduce"))
    op = ops.Reduce(function=function, keepdims=view.keepdims, noop_with_empty_axes=noop, axes=axes)
    return build(op, node.input(0), computed)


for _sibling, _newest in _SIBLINGS.items():
    lowers(f"Reduce{_sibling}", newest=_newest)(reduce)
remark("ReduceMax", "NaN is the largest, as in NumPy; in onnxruntime, the result depends on the position of NaN.")
remark("ReduceMin", "NaN is the smallest, as in NumPy; in onnxruntime, the result depends on the position of NaN.")
