"""BatchNormalization, InstanceNormalization, GroupNormalization, LRN, LpNormalization: normalization of channels."""

from __future__ import annotations

import numpy as np

from compiler.ir.views.norm import BatchNormView, NormView
from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("BatchNormalization", newest=15)
def batch_normalization(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`BatchNormalization`. `spatial` (before version 9) must agree with the scale's shape, `[C]` or `[C, D1, …]`.

    In training mode, which models use to standardize weights, the statistics are computed from X.
    """
    view = BatchNormView.read(node)
    op = ops.BatchNorm(epsilon=view.epsilon)
    if node.version < 9:
        _check_spatial(node, view.is_spatial)
    x, scale, bias, *given = (node.input(index) for index in range(5))
    if not view.is_training:
        return (build(op, x, scale, bias, *given),)
    statistics = _statistics(node, x, build)
    is_moved = node.uses_output(1) or node.uses_output(2)
    running = zip(given, statistics, strict=True) if is_moved else ()
    return build(op, x, scale, bias, *statistics), *(_moved(old, new, view.momentum, build) for old, new in running)


def _check_spatial(node: Node, spatial: bool) -> None:
    x, scale = node.input(0), node.input(1)
    expected = 1 if spatial else None if x.rank is None else x.rank - 1
    if None not in (expected, scale.rank) and scale.rank != expected:
        message = (
            f"the scale of BatchNormalization with spatial {int(spatial)} has {expected} dimensions, found {scale.rank}"
        )
        node.refuse("CC0202", message)


def _statistics(node: Node, x: Value, build: PlanBuilder) -> tuple[Value, Value]:
    """The mean and variance of each channel, in float32 or wider."""
    if x.rank is None or x.rank < 2:
        node.refuse("CC0205", "BatchNormalization in training mode needs an input of known rank, 2 or more")
    wide = converted(build, x, "float32") if x.dtype in ("float16", "bfloat16") else x
    axes = [axis for axis in range(x.rank) if axis != 1]
    kept, mean = (
        build(ops.Reduce(function="Mean", keepdims=keep, noop_with_empty_axes=False, axes=axes), wide)
        for keep in (True, False)
    )
    centered = build(ops.Binary(function="Sub"), wide, kept)
    square = build(ops.Binary(function="Mul"), centered, centered)
    variance = build(ops.Reduce(function="Mean", keepdims=False, noop_with_empty_axes=False, axes=axes), square)
    return mean, variance


def _moved(old: Value, new: Value, momentum: float, build: PlanBuilder) -> Value:
    """`old · momentum + new · (1 - momentum)`."""
    factors = (build.constant(np.array(factor, old.dtype)) for factor in (momentum, 1 - momentum))
    scaled = zip((old, converted(build, new, old.dtype)), factors, strict=True)
    return build(ops.Binary(function="Add"), *(build(ops.Binary(function="Mul"), *pair) for pair in scaled))


@lowers("InstanceNormalization", newest=22)
def instance_normalization(node: Node, build: PlanBuilder) -> Value:
    """`InstanceNormalization`."""
    op = ops.InstanceNorm(epsilon=NormView.read(node).epsilon)
    return build(op, node.input(0), node.input(1), node.input(2))


@lowers("GroupNormalization", newest=21)
def group_normalization(node: Node, build: PlanBuilder) -> Value:
    """`GroupNormalization`; version 18 has a scale for each group, and version 21 for each channel."""
    if node.version >= 21:
        node.precision("stash_type", node.input(0), "float32")
    groups = node.int("num_groups")
    if groups < 1:
        node.refuse("CC0202", f"num_groups {groups} is not positive")
    op = ops.GroupNorm(groups=groups, epsilon=NormView.read(node).epsilon)
    return build(op, node.input(0), node.input(1), node.input(2))


@lowers("LRN", newest=13)
def local_response_normalization(node: Node, build: PlanBuilder) -> Value:
    """`LRN`."""
    size = node.int("size")
    if size < 1:
        node.refuse("CC0202", f"size {size} is not positive")
    alpha, beta, bias = node.float("alpha", 1e-4), node.float("beta", 0.75), node.float("bias", 1.0)
    return build(ops.Lrn(size=size, alpha=alpha, beta=beta, bias=bias), node.input(0))


@lowers("LpNormalization", newest=22)
def lp_normalization(node: Node, build: PlanBuilder) -> Value:
    """`LpNormalization`; zeros stay zeros, and float16 and bfloat16 are computed in float32."""
    p, x = node.int("p", 2), node.input(0)
    if p not in (1, 2):
        node.refuse("CC0202", f"LpNormalization has no order {p}, only 1 and 2")
    is_half = x.dtype in ("float16", "bfloat16")
    wide = converted(build, x, "float32") if is_half else x
    if wide.dtype not in ("float32", "float64"):
        node.refuse("CC0205", f"LpNormalization needs floating-point numbers, found {x.dtype}")
    axes = [node.int("axis", -1)]
    function: ops.Reduction = "L1" if p == 1 else "L2"
    norm = build(ops.Reduce(function=function, keepdims=True, noop_with_empty_axes=False, axes=axes), wide)
    zero, one = (build.constant(np.array(number, wide.dtype)) for number in (0, 1))
    divisor = build(ops.Where(), build(ops.Binary(function="Equal"), norm, zero), one, norm)
    return converted(build, build(ops.Binary(function="Div"), wide, divisor), x.dtype)
