"""ConstantOfShape, Range, EyeLike, OneHot: tensors generated from a few numbers."""

from __future__ import annotations

import numpy as np

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("ConstantOfShape", newest=25)
def constant_of_shape(node: Node, build: PlanBuilder) -> Value:
    """`ConstantOfShape`; the default value is a float32 zero."""
    value = node.tensor("value", np.zeros(1, np.float32))
    if value.size != 1:
        node.refuse("CC0202", f"ConstantOfShape's value has {value.size} elements instead of one")
    if node.input(0).rank not in (1, None):
        node.refuse("CC0205", f"ConstantOfShape's shape is a list, found {node.input(0)}")
    return build(ops.Fill(), node.input(0), build.constant(value))


@lowers("Range", newest=27)
def range_(node: Node, build: PlanBuilder) -> Value:
    """`Range`; float16 and bfloat16 are computed in float32."""
    if node.version >= 27 and node.int("stash_type", 1) != 1:
        node.refuse("CC0202", "Range computes float16 and bfloat16 in float32 only (stash_type 1)")
    return build(ops.Range(), node.input(0), node.input(1), node.input(2))


@lowers("EyeLike", newest=22)
def eye_like(node: Node, build: PlanBuilder) -> Value:
    """`EyeLike`; the default dtype is the input's."""
    dtype = node.dtype_attr("dtype", node.input(0).dtype)
    return build(ops.EyeLike(dtype=dtype, k=node.int("k", 0)), node.input(0))  # type: ignore[arg-type]


@lowers("OneHot", newest=28)
def one_hot(node: Node, build: PlanBuilder) -> Value:
    """`OneHot`."""
    return build(ops.OneHot(axis=node.int("axis", -1)), node.input(0), node.input(1), node.input(2))
