"""Concat, Split: tensors joined along an axis, and taken apart."""

from __future__ import annotations

import numpy as np

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Concat", newest=13)
def concat(node: Node, build: PlanBuilder) -> Value:
    """`Concat`."""
    return build(ops.Concat(axis=node.int("axis")), *(node.input(index) for index in range(len(node.inputs))))


@lowers("Split", newest=18)
def split(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Split`: sizes from the attribute (before 13), the input, or equal ones (`num_outputs` from 18 on)."""
    axis = node.int("axis", 0)
    sizes = node.optional(1)
    listed = node.ints("split", None) if node.version < 13 else None
    if listed is not None:
        sizes = build.constant(np.array(listed, np.int64))
    parts = node.int("num_outputs", node.outputs) if node.version >= 18 else node.outputs
    if parts != node.outputs:
        node.refuse("CC0202", f"Split has {node.outputs} outputs, but num_outputs is {parts}")
    if sizes is None and node.version < 18:
        _check_even(node, axis)
    return build(ops.Split(axis=axis), node.input(0), sizes, outputs=node.outputs)


def _check_even(node: Node, axis: int) -> None:
    """Before version 18, equal parts are equal."""
    shape = node.input(0).shape
    size = None if shape is None or not -len(shape) <= axis < len(shape) else shape[axis]
    if isinstance(size, int) and size % node.outputs:
        node.refuse("CC0202", f"{size} rows do not make {node.outputs} equal parts")
