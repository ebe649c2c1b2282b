"""Parts of classifiers and regressors: their rows, their labels, and the functions that `post_transform` names."""

from __future__ import annotations

from typing import Any

import numpy as np

from compiler.lower.cast import converted
from compiler.lower.node import Node
from compiler.plan import PlanBuilder, Value, ops

NAMES = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT")


def rows(node: Node, build: PlanBuilder) -> Value:
    """Input 0, a matrix of numbers, as float32."""
    x = node.input(0)
    if x.dtype not in ("float32", "float64", "int32", "int64") or x.rank != 2:
        node.refuse("CC0202", f"{node.op_type} needs a matrix of numbers, found {x.dtype} of rank {x.rank}")
    return converted(build, x, "float32")


def class_labels(node: Node, integers: str) -> np.ndarray[Any, Any]:
    """The labels of the classes, from `classlabels_strings` or the attribute `integers`."""
    texts, numbers = node.strings("classlabels_strings", None) or [], node.ints(integers, None) or []
    if texts and numbers:
        node.refuse("CC0202", f"{node.op_type} has strings and integers as class labels")
    return np.array(texts, object) if texts else np.array(numbers, np.int64)


def labeled(build: PlanBuilder, labels: np.ndarray[Any, Any], classes: Value) -> Value:
    """The labels of classes, which are given by their indices."""
    return build(ops.Gather(axis=0), build.constant(labels), classes)


def largest(build: PlanBuilder, scores: Value) -> Value:
    """The index of the first of the largest scores of each row."""
    return build(ops.ArgReduce(function="ArgMax", axis=-1, keepdims=False, select_last_index=False), scores)


def floats(node: Node, name: str) -> np.ndarray[Any, Any]:
    """A list of numbers, which may be absent."""
    return np.array(node.floats(name, None) or [], np.float32)


def transform(node: Node) -> str:
    """The attribute `post_transform`; refuses an unknown one."""
    name = node.string("post_transform", "NONE")
    if name not in NAMES:
        node.refuse("CC0202", f"{node.op_type} has no post_transform {name!r}")
    return name


def transformed(build: PlanBuilder, name: str, scores: Value) -> Value:
    """The function `name` of the scores `[N, C]` of float32. SOFTMAX and SOFTMAX_ZERO work on the rows."""
    if name == "LOGISTIC":
        return build(ops.Unary(function="Sigmoid"), scores)
    if name == "SOFTMAX":
        return build(ops.Softmax(axis=-1, coerce_2d=False, function="Softmax"), scores)
    if name == "SOFTMAX_ZERO":
        return _softmax_zero(build, scores)
    return _probit(build, scores) if name == "PROBIT" else scores


def number(build: PlanBuilder, value: float) -> Value:
    """A constant of float32."""
    return build.constant(np.array(value, np.float32))


def binary(build: PlanBuilder, function: ops.BinaryFunction, a: Value, b: Value) -> Value:
    """`function(a, b)`."""
    return build(ops.Binary(function=function), a, b)


def reduced(build: PlanBuilder, function: ops.Reduction, x: Value) -> Value:
    """The function of each row."""
    return build(ops.Reduce(function=function, keepdims=True, noop_with_empty_axes=False, axes=[-1]), x)


def both(node: Node, build: PlanBuilder, name: str, score: Value, total: float) -> Value:
    """The scores of two classes, from that of the second, as in onnxruntime.

    Their sum is `total`, but LOGISTIC is the function of `−s` and `s`. Other functions have no effect.
    """
    if name == "PROBIT":
        node.refuse("CC0202", "onnxruntime does not define the scores of two classes for the post_transform PROBIT")
    first = binary(build, "Sub", number(build, 0 if name == "LOGISTIC" else total), score)
    scores = build(ops.Concat(axis=-1), first, score)
    return transformed(build, name, scores) if name == "LOGISTIC" else scores


def _softmax_zero(build: PlanBuilder, x: Value) -> Value:
    """Softmax of the scores but those of 0, which stay 0.

    onnxruntime multiplies a score of at most 10⁻⁷ by `e⁻ᵐ` for the largest score m, and does not count it in the sum.
    """
    most = reduced(build, "Max", x)
    power = build(ops.Unary(function="Exp"), binary(build, "Sub", x, most))
    counts = binary(build, "Greater", build(ops.Unary(function="Abs"), x), number(build, 1e-7))
    total = reduced(build, "Sum", build(ops.Where(), counts, power, number(build, 0)))
    scale = build(ops.Unary(function="Exp"), build(ops.Unary(function="Neg"), most))
    power = build(ops.Where(), counts, power, binary(build, "Mul", x, scale))
    return binary(build, "Div", power, total)


def _probit(build: PlanBuilder, x: Value) -> Value:
    """`√2 · erf⁻¹(2x − 1)`, with onnxruntime's approximation of erf⁻¹.

    Source: S. Winitzki, "A handy approximation for the error function and its inverse", 2008.
    """
    one, a = number(build, 1), 0.147
    x = binary(build, "Sub", binary(build, "Add", x, x), one)
    product = binary(build, "Mul", binary(build, "Sub", one, x), binary(build, "Add", one, x))
    log = build(ops.Unary(function="Log"), product)
    half = binary(build, "Mul", log, number(build, 0.5))
    half = binary(build, "Add", half, number(build, 2 / (np.pi * a)))
    square = binary(build, "Sub", binary(build, "Mul", half, half), binary(build, "Mul", log, number(build, 1 / a)))
    root = build(ops.Unary(function="Sqrt"), square)
    root = build(ops.Unary(function="Sqrt"), binary(build, "Sub", root, half))
    root = binary(build, "Mul", root, number(build, 2**0.5))
    is_negative = binary(build, "Less", x, number(build, 0))
    return build(ops.Where(), is_negative, build(ops.Unary(function="Neg"), root), root)
