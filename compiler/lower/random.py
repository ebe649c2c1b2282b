"""RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial: random numbers.

The seed of a node without a seed is computed from its result's name: different nodes draw different numbers, and a
model always draws the same numbers.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("RandomNormal", newest=22)
def random_normal(node: Node, build: PlanBuilder) -> Value:
    """`RandomNormal`."""
    return build(_normal(node, node.dtype_attr("dtype", "float32")), _shape(node, build))


@lowers("RandomNormalLike", newest=22)
def random_normal_like(node: Node, build: PlanBuilder) -> Value:
    """`RandomNormalLike`: the input's shape; the default dtype is the input's."""
    return build(_normal(node, node.dtype_attr("dtype", node.input(0).dtype)), build(ops.Shape(start=0), node.input(0)))


@lowers("RandomUniform", newest=22)
def random_uniform(node: Node, build: PlanBuilder) -> Value:
    """`RandomUniform`."""
    return build(_uniform(node, node.dtype_attr("dtype", "float32")), _shape(node, build))


@lowers("RandomUniformLike", newest=22)
def random_uniform_like(node: Node, build: PlanBuilder) -> Value:
    """`RandomUniformLike`: the input's shape; the default dtype is the input's."""
    return build(
        _uniform(node, node.dtype_attr("dtype", node.input(0).dtype)), build(ops.Shape(start=0), node.input(0))
    )


@lowers("Bernoulli", newest=22)
def bernoulli(node: Node, build: PlanBuilder) -> Value:
    """`Bernoulli`: 1 with the input's probability; in the standard's function body, 0 has that probability."""
    p, dtype = node.input(0), node.dtype_attr("dtype", node.input(0).dtype)
    drawn = build(ops.RandomUniform(dtype="float64", low=0.0, high=1.0, seed=_seed(node)), build(ops.Shape(start=0), p))
    ones = build(ops.Binary(function="Less"), drawn, converted(build, p, "float64"))
    return converted(build, ones, dtype)


@lowers("Multinomial", newest=22)
def multinomial(node: Node, build: PlanBuilder) -> Value:
    """`Multinomial`."""
    samples = node.int("sample_size", 1)
    if samples < 1:
        node.refuse("CC0202", f"sample_size {samples} is not positive")
    dtype = node.dtype_attr("dtype", "int32")
    return build(ops.Multinomial(dtype=dtype, samples=samples, seed=_seed(node)), node.input(0))  # type: ignore[arg-type]


def _normal(node: Node, dtype: str) -> ops.RandomNormal:
    mean, scale = _finite(node, "mean", 0.0), _finite(node, "scale", 1.0)
    return ops.RandomNormal(dtype=dtype, mean=mean, scale=scale, seed=_seed(node))  # type: ignore[arg-type]


def _uniform(node: Node, dtype: str) -> ops.RandomUniform:
    low, high = _finite(node, "low", 0.0), _finite(node, "high", 1.0)
    return ops.RandomUniform(dtype=dtype, low=low, high=high, seed=_seed(node))  # type: ignore[arg-type]


def _finite(node: Node, name: str, default: float) -> float:
    number = node.float(name, default)
    if not math.isfinite(number):
        node.refuse("CC0202", f"{node.op_type}'s {name} is {number}, which is not finite")
    return number


def _shape(node: Node, build: PlanBuilder) -> Value:
    return build.constant(np.array(node.ints("shape"), np.int64))


def _seed(node: Node) -> int:
    seed = node.float("seed", None)
    return zlib.crc32(node.output_name().encode()) if seed is None else int(np.float32(seed).view(np.uint32))
