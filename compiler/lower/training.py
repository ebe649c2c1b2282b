"""Steps of optimizers, domain `ai.onnx.preview.training`: Adagrad, Adam and Momentum.

A node has inputs `R, T, X₁ … Xₙ, G₁ … Gₙ, …`: the learning rate, the number of earlier steps, tensors, their gradients,
and one or two more lists of tensors. Its outputs are the new tensors, and those of the lists after the gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from compiler.ir import dtypes
from compiler.lower.cast import converted
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops

_lowers = partial(lowers, domain="ai.onnx.preview.training", newest=1)


class _Numbers:
    """Arithmetic of values with numbers, in the dtype of the values."""

    def __init__(self, build: PlanBuilder, dtype: str) -> None:
        self.build, self.dtype = build, dtype

    def number(self, number: Value | float) -> Value:
        """The number as a scalar of the dtype."""
        if isinstance(number, Value):
            return converted(self.build, number, self.dtype)
        return self.build.constant(np.array(number, dtypes.numpy_dtype(self.dtype)))

    def binary(self, function: ops.BinaryFunction, a: Value | float, b: Value | float) -> Value:
        """`function(a, b)`."""
        return self.build(ops.Binary(function=function), self.number(a), self.number(b))

    def add(self, a: Value | float, b: Value | float) -> Value:
        """`a + b`."""
        return self.binary("Add", a, b)

    def sub(self, a: Value | float, b: Value | float) -> Value:
        """`a − b`."""
        return self.binary("Sub", a, b)

    def mul(self, a: Value | float, b: Value | float) -> Value:
        """`a · b`."""
        return self.binary("Mul", a, b)

    def div(self, a: Value | float, b: Value | float) -> Value:
        """`a / b`."""
        return self.binary("Div", a, b)

    def sqrt(self, x: Value) -> Value:
        """`√x`."""
        return self.build(ops.Unary(function="Sqrt"), x)

    def after_start(self, steps: Value, later: Value | float, first: Value | float) -> Value:
        """`later` if there were steps before this one, and `first` otherwise."""
        is_later = self.binary("Greater", steps, 0)
        return self.build(ops.Where(), is_later, self.number(later), self.number(first))


def _lists(node: Node, count: int) -> list[tuple[Value, ...]]:
    """For each tensor, its `count` inputs: `X, G, …`."""
    values = [node.input(at) for at in range(2, len(node.inputs))]
    size, rest = divmod(len(values), count)
    if rest or not size or node.outputs != size * (count - 1):
        found = f"{len(values)} tensors and {node.outputs} outputs"
        node.refuse(
            "CC0202", f"{node.op_type} needs {count} inputs and {count - 1} outputs for each tensor, found {found}"
        )
    return list(zip(*(values[at * size : (at + 1) * size] for at in range(count)), strict=True))


def _outputs(found: Sequence[tuple[Value, ...]]) -> tuple[Value, ...]:
    """The outputs of all tensors, list by list."""
    return tuple(value for values in zip(*found, strict=True) for value in values)


@_lowers("Adagrad")
def adagrad(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Adagrad`: each element has the learning rate of the sum of its squared gradients."""
    rate, steps = node.input(0), node.input(1)
    decay, epsilon, norm = (node.float(name, 0.0) for name in ("decay_factor", "epsilon", "norm_coefficient"))
    found = []
    for x, gradient, squares in _lists(node, 3):
        to = _Numbers(build, x.dtype)
        slower = to.div(rate, to.add(1, to.mul(steps, decay)))
        regular = to.add(to.mul(norm, x), gradient)
        squares = to.add(squares, to.mul(regular, regular))
        step = to.div(to.mul(slower, regular), to.add(to.sqrt(squares), epsilon))
        found.append((to.sub(x, step), squares))
    return _outputs(found)


@_lowers("Adam")
def adam(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Adam`: running means of gradients and of their squares, corrected for their start."""
    rate, steps = node.input(0), node.input(1)
    alpha, beta, epsilon = node.float("alpha", 0.9), node.float("beta", 0.999), node.float("epsilon", 0.0)
    norm, after = node.float("norm_coefficient", 0.0), node.float("norm_coefficient_post", 0.0)
    found = []
    for x, gradient, means, squares in _lists(node, 4):
        to = _Numbers(build, x.dtype)
        regular = to.add(to.mul(norm, x), gradient)
        means = to.add(to.mul(alpha, means), to.mul(1 - alpha, regular))
        squares = to.add(to.mul(beta, squares), to.mul(1 - beta, to.mul(regular, regular)))
        start = to.div(to.sqrt(to.sub(1, to.binary("Pow", beta, steps))), to.sub(1, to.binary("Pow", alpha, steps)))
        adjusted = to.after_start(steps, to.mul(rate, start), rate)
        new = to.sub(x, to.div(to.mul(adjusted, means), to.add(to.sqrt(squares), epsilon)))
        found.append((to.mul(1 - after, new), means, squares))
    return _outputs(found)


@_lowers("Momentum")
def momentum(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`Momentum`, of the modes `standard` and `nesterov`."""
    rate, steps, mode = node.input(0), node.input(1), node.string("mode")
    alpha, beta, norm = node.float("alpha"), node.float("beta"), node.float("norm_coefficient")
    if mode not in ("standard", "nesterov"):
        node.refuse("CC0202", f"Momentum has no mode {mode!r}")
    found = []
    for x, gradient, momenta in _lists(node, 3):
        to = _Numbers(build, x.dtype)
        regular = to.add(to.mul(norm, x), gradient)
        momenta = to.add(to.mul(alpha, momenta), to.mul(to.after_start(steps, beta, 1), regular))
        step = momenta if mode == "standard" else to.add(regular, to.mul(alpha, momenta))
        found.append((to.sub(x, to.mul(rate, step)), momenta))
    return _outputs(found)
