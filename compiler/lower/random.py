"""RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial, Dropout: random numbers.

The seed of a node without a seed is computed from its result's name: different nodes draw different numbers, and a
model always draws the same numbers.
"""

from __future__ import annotations

import math
import zlib

import numpy as np

from compiler.ir import dtypes
from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers, remark
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


@lowers("Dropout", newest=22)
def dropout(node: Node, build: PlanBuilder) -> Value | tuple[Value, ...]:
    """`Dropout`. In inference, it keeps every element, and the mask is true everywhere.

    If the input `training_mode` is no constant, each run chooses the mode.
    """
    node.float("ratio", 0.5)  # the share that training would drop, before version 12
    x, seed, mode = node.input(0), node.int("seed", None), node.optional(2)
    if mode is None or _is_zero(mode.constant) or _is_zero(node.constant(1)):
        return (x, _every(node, build, x)) if node.uses_output(1) else x if node.outputs == 1 else (x, x)
    if mode.constant is not None:
        node.refuse(
            "CC0206",
            "Dropout is only supported in inference, or if a run chooses the mode",
            help="export the model in evaluation mode, so that training_mode is a constant false",
        )
    return _dropped(node, build, x, mode, _seed_of(node, seed))


remark(
    "Dropout",
    "If `training_mode` is an input of the model, a run may drop elements. They are other ones than in onnxruntime. "
    "A constant `training_mode` of true is an error, because it is usually a mistake of an export.",
)


def _dropped(node: Node, build: PlanBuilder, x: Value, mode: Value, seed: int) -> tuple[Value, ...]:
    """`x · mask / (1 − ratio)` and the mask; if the mode is inference, x and a mask that is true everywhere."""
    one, none = build.constant(np.array(1.0)), build.constant(np.array([], np.int64))
    mode = build(ops.Reshape(allow_zero=True), mode, none)  # a single number may be a list
    ratio = node.optional(1) or build.constant(np.array(0.5))
    ratio = converted(build, build(ops.Reshape(allow_zero=True), ratio, none), "float64")
    drawn = build(ops.RandomUniform(dtype="float64", low=0.0, high=1.0, seed=seed), build(ops.Shape(start=0), x))
    kept = build(ops.Binary(function="GreaterOrEqual"), drawn, ratio)
    mask = build(ops.Binary(function="Or"), kept, build(ops.Unary(function="Not"), mode))
    factor = build(ops.Binary(function="Div"), one, build(ops.Binary(function="Sub"), one, ratio))
    factor = converted(build, build(ops.Where(), mode, factor, one), x.dtype)
    zero = build.constant(np.array(0, dtypes.numpy_dtype(x.dtype)))
    y = build(ops.Where(), mask, build(ops.Binary(function="Mul"), x, factor), zero)
    return (y, mask)[: node.outputs]


def _every(node: Node, build: PlanBuilder, x: Value) -> Value:
    """A mask for x that is true everywhere; before version 10, it has the dtype of x."""
    mask = np.array(True if node.version >= 10 else 1, "bool" if node.version >= 10 else dtypes.numpy_dtype(x.dtype))
    return build(ops.Expand(), build.constant(mask), build(ops.Shape(start=0), x))


def _is_zero(number: np.ndarray | None) -> bool:
    return number is not None and not np.any(number)


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
    return _seed_of(node, None if seed is None else int(np.float32(seed).view(np.uint32)))


def _seed_of(node: Node, given: int | None) -> int:
    """The seed of a node that may have one, as an unsigned number."""
    return zlib.crc32(node.output_name().encode()) if given is None else given % (1 << 64)
