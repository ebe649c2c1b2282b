"""SVMClassifier, SVMRegressor: support vector machines, domain `ai.onnx.ml`."""

from __future__ import annotations

import math
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers, remark
from compiler.lower.scores import (
    binary,
    both,
    class_labels,
    floats,
    labeled,
    largest,
    number,
    rows,
    transform,
    transformed,
)
from compiler.plan import PlanBuilder, Value, ops

Array = np.ndarray[Any, Any]

_lowers = partial(lowers, domain="ai.onnx.ml")


@_lowers("SVMRegressor", newest=1)
def svm_regressor(node: Node, build: PlanBuilder) -> Value:
    """`SVMRegressor`; as in onnxruntime, its post_transform has no effect."""
    x = rows(node, build)
    coefficients, rho, kernel = floats(node, "coefficients"), floats(node, "rho"), _Kernel(node)
    transform(node)
    count, one_class = node.int("n_supports", 0), node.flag("one_class", False)
    vectors = floats(node, "support_vectors")
    if count:
        vectors = _matrix(node, "support_vectors", vectors, count)
        weights = _matrix(node, "coefficients", coefficients, 1)
    else:
        vectors, weights, kernel.name = _matrix(node, "coefficients", coefficients, 1), np.ones((1, 1)), "LINEAR"
    if rho.size != 1 or weights.shape[1] != len(vectors):
        node.refuse("CC0202", f"SVMRegressor has {coefficients.size} coefficients and {rho.size} numbers rho")
    y = _weighted(build, kernel, x, vectors, weights.T, rho)
    if not one_class:
        return y
    is_inside = binary(build, "Greater", y, number(build, 0))
    return build(ops.Where(), is_inside, number(build, 1), number(build, -1))


@_lowers("SVMClassifier", newest=1)
def svm_classifier(node: Node, build: PlanBuilder) -> tuple[Value, Value]:
    """`SVMClassifier`: pairs of classes vote for the class; without support vectors, the largest score decides."""
    x = rows(node, build)
    labels = class_labels(node, "classlabels_ints")
    counts, name, kernel = node.ints("vectors_per_class", None) or [], transform(node), _Kernel(node)
    coefficients, rho = floats(node, "coefficients"), floats(node, "rho")
    chances = floats(node, "prob_a"), floats(node, "prob_b")
    vectors = floats(node, "support_vectors")
    if len(labels) < 2:
        node.refuse("CC0202", f"SVMClassifier has {len(labels)} class labels, fewer than two")
    if not any(counts):
        return _linear_classifier(node, build, x, labels, coefficients, rho, name, chances[0].size > 0)
    if len(counts) != len(labels) or min(counts) < 0:
        node.refuse("CC0202", f"SVMClassifier has {len(labels)} class labels and vectors of {len(counts)} classes")
    needed = math.comb(len(labels), 2)
    if needed != rho.size or any(chance.size not in (0, needed) for chance in chances):
        node.refuse("CC0202", f"SVMClassifier needs {needed} numbers rho, prob_a and prob_b, found {rho.size} rho")
    if chances[0].size != chances[1].size:
        node.refuse("CC0202", "SVMClassifier needs as many numbers prob_a as prob_b")
    coefficients = _matrix(node, "coefficients", coefficients, len(labels) - 1)
    if coefficients.shape[1] != sum(counts):
        node.refuse("CC0202", f"SVMClassifier has {sum(counts)} vectors and {coefficients.shape[1]} coefficients each")
    pairs = list(combinations(range(len(labels)), 2))
    weights = _pair_weights(coefficients, counts, pairs)
    vectors = _matrix(node, "support_vectors", vectors, sum(counts))
    scores = _weighted(build, kernel, x, vectors, weights, rho)
    winners = _winners(build, scores, pairs, len(labels))
    if chances[0].size:
        scores = _probabilities(build, scores, *chances, len(labels))
    elif len(labels) == 2:
        return labeled(build, labels, winners), both(node, build, name, scores, 0 if name == "NONE" else 1)
    return labeled(build, labels, winners), transformed(build, name, scores)


remark("SVMRegressor", "as in onnxruntime, `post_transform` has no effect.")


class _Kernel:
    """The function of a row and a support vector."""

    def __init__(self, node: Node) -> None:
        self.name = node.string("kernel_type", "LINEAR")
        parameters = node.floats("kernel_params", None) or [0.0, 0.0, 0.0]
        if self.name not in ("LINEAR", "POLY", "RBF", "SIGMOID") or len(parameters) != 3:
            node.refuse("CC0202", f"{node.op_type} has no kernel {self.name!r} with {len(parameters)} parameters")
        self.gamma, self.shift, self.degree = parameters

    def apply(self, build: PlanBuilder, x: Value, vectors: Array) -> Value:
        """The function of each row `[N, F]` and each vector `[S, F]`: `[N, S]`."""
        if self.name == "RBF":
            distances = build(ops.SquaredDistances(), x, build.constant(vectors.astype(np.float32)))
            return build(ops.Unary(function="Exp"), binary(build, "Mul", distances, number(build, -self.gamma)))
        scale = 1.0 if self.name == "LINEAR" else self.gamma
        with np.errstate(invalid="ignore"):  # an infinite number times 0 is NaN
            y = _product(build, x, (scale * vectors.astype(np.float64)).T)
        if self.name == "LINEAR":
            return y
        y = binary(build, "Add", y, number(build, self.shift))
        if self.name == "SIGMOID":
            return build(ops.Unary(function="Tanh"), y)
        return binary(build, "Pow", y, number(build, self.degree))


def _weighted(build: PlanBuilder, kernel: _Kernel, x: Value, vectors: Array, weights: Array, rho: Array) -> Value:
    """`kernel(x, vectors) · weights + rho`. A linear kernel needs one product."""
    if kernel.name == "LINEAR":
        with np.errstate(invalid="ignore"):
            y = _product(build, x, vectors.astype(np.float64).T @ weights)
    else:
        y = _product(build, kernel.apply(build, x, vectors), weights)
    return binary(build, "Add", y, build.constant(rho))


def _product(build: PlanBuilder, x: Value, matrix: Array) -> Value:
    with np.errstate(over="ignore"):  # an element beyond the largest number of float32 is infinite
        constant = build.constant(matrix.astype(np.float32))
    return build(ops.MatMul(trans_a=False, trans_b=False), x, constant)


def _pair_weights(coefficients: Array, counts: list[int], pairs: list[tuple[int, int]]) -> Array:
    """The weight of each vector in the score of each pair: `[S, P]`, from `coefficients [C − 1, S]`."""
    ends = np.cumsum(counts)
    weights = np.zeros((coefficients.shape[1], len(pairs)))
    for column, (i, j) in enumerate(pairs):
        of_i, of_j = slice(ends[i] - counts[i], ends[i]), slice(ends[j] - counts[j], ends[j])
        weights[of_i, column] = coefficients[j - 1, of_i]
        weights[of_j, column] = coefficients[i, of_j]
    return weights


def _winners(build: PlanBuilder, scores: Value, pairs: list[tuple[int, int]], classes: int) -> Value:
    """The class with the most votes. The first class of a pair gets its vote if the score is positive."""
    votes, lost = np.zeros((len(pairs), classes)), np.zeros(classes, np.float32)
    for row, (i, j) in enumerate(pairs):
        votes[row, i], votes[row, j] = 1, -1
        lost[j] += 1
    is_first = converted(build, binary(build, "Greater", scores, number(build, 0)), "float32")
    return largest(build, binary(build, "Add", _product(build, is_first, votes), build.constant(lost)))


def _probabilities(build: PlanBuilder, scores: Value, a: Array, b: Array, classes: int) -> Value:
    """The probability of each class, from those of the pairs: `1 / (1 + e^(a · score + b))`."""
    exponents = binary(build, "Add", binary(build, "Mul", scores, build.constant(-a)), build.constant(-b))
    chances = build(ops.Unary(function="Sigmoid"), exponents)
    chances = build(ops.Clip(), chances, number(build, 1e-7), number(build, np.float32(1) - np.float32(1e-7)))
    return build(ops.PairwiseCoupling(classes=classes), chances)


def _linear_classifier(
    node: Node, build: PlanBuilder, x: Value, labels: Array, coefficients: Array, rho: Array, name: str, known: bool
) -> tuple[Value, Value]:
    """The classifier without support vectors, with a row of coefficients for each class."""
    if not rho.size:
        node.refuse("CC0202", "SVMClassifier needs a number rho")
    matrix = _matrix(node, "coefficients", coefficients, len(labels)).T
    scores = binary(build, "Add", _product(build, x, matrix), number(build, float(rho[0])))
    winners = largest(build, scores)
    if len(labels) == 2 and not known:
        most = build(ops.Reduce(function="Max", keepdims=False, noop_with_empty_axes=False, axes=[-1]), scores)
        is_positive = bool((coefficients >= 0).all())
        limit = number(build, 0.5 if is_positive else 0.0)
        passes = binary(build, "GreaterOrEqual" if is_positive else "Greater", most, limit)
        winners = build(ops.Where(), passes, build.constant(np.array(1)), winners)
    return labeled(build, labels, winners), transformed(build, name, scores)


def _matrix(node: Node, name: str, numbers: Array, rows: int) -> Array:
    """The numbers as a matrix of `rows` rows."""
    if rows < 1 or not numbers.size or numbers.size % rows:
        node.refuse("CC0202", f"{node.op_type} has {numbers.size} {name} in {rows} rows")
    return numbers.reshape(rows, -1)
