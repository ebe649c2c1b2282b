"""ScatterElements, Scatter, ScatterND, TensorScatter: elements and rows written by index."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_REDUCTIONS: dict[str, ops.Combination] = {"none": "none", "add": "add", "mul": "mul", "min": "min", "max": "max"}


@lowers("ScatterElements", newest=18)
@lowers("Scatter", newest=11)
def scatter_elements(node: Node, build: PlanBuilder) -> Value:
    """`ScatterElements`, which was named `Scatter` before version 11."""
    op = ops.ScatterElements(axis=node.int("axis", 0), reduction=_reduction(node))
    return build(op, node.input(0), node.input(1), node.input(2))


@lowers("ScatterND", newest=18)
def scatter_nd(node: Node, build: PlanBuilder) -> Value:
    """`ScatterND`."""
    return build(ops.ScatterNd(reduction=_reduction(node)), node.input(0), node.input(1), node.input(2))


@lowers("TensorScatter", newest=24)
def tensor_scatter(node: Node, build: PlanBuilder) -> Value:
    """`TensorScatter`."""
    mode = node.string("mode", "linear")
    if mode not in ("linear", "circular"):
        node.refuse("CC0202", f"TensorScatter has no mode {mode!r}")
    op = ops.TensorScatter(axis=node.int("axis", -2), circular=mode == "circular")
    return build(op, node.input(0), node.input(1), node.optional(2))


def _reduction(node: Node) -> ops.Combination:
    name = node.string("reduction", "none") if node.version >= 16 else "none"
    reduction = _REDUCTIONS.get(name)
    if reduction is None:
        node.refuse("CC0202", f"{node.op_type} has no reduction {name!r}")
    return reduction
