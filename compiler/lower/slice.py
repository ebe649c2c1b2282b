"""Slice: parts of a tensor."""

from __future__ import annotations

import numpy as np

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Slice", newest=13)
def slice_(node: Node, build: PlanBuilder) -> Value:
    """`Slice`: attributes before 10, inputs from 10 on."""
    if node.version >= 10:
        bounds = [node.input(1), node.input(2), node.optional(3), node.optional(4)]
        return build(ops.Slice(), node.input(0), *bounds)
    lists = [node.ints("starts"), node.ints("ends"), node.ints("axes", None)]
    known = [None if values is None else build.constant(np.array(values, np.int64)) for values in lists]
    return build(ops.Slice(), node.input(0), *known)
