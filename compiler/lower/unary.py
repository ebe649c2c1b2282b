"""Functions of one element."""

from __future__ import annotations

from collections.abc import Callable

from compiler.ir.views.hard_sigmoid import HardSigmoidView
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

__all__ = ["function_of"]

_PLAIN: dict[ops.AnyUnaryFunction, int] = {
    "Abs": 13,
    "Acos": 22,
    "Acosh": 22,
    "Asin": 22,
    "Asinh": 22,
    "Atan": 22,
    "Atanh": 22,
    "BitwiseNot": 18,
    "Ceil": 13,
    "Cos": 22,
    "Cosh": 22,
    "Erf": 13,
    "Exp": 13,
    "Floor": 13,
    "HardSwish": 22,
    "IsNaN": 20,
    "Log": 13,
    "Mish": 22,
    "Neg": 13,
    "Not": 1,
    "Reciprocal": 13,
    "Relu": 14,
    "Round": 22,
    "Sigmoid": 13,
    "Sign": 13,
    "Sin": 22,
    "Sinh": 22,
    "Softplus": 22,
    "Softsign": 22,
    "Sqrt": 13,
    "Tan": 22,
    "Tanh": 13,
}
"""Functions of operators with the same name and without attributes, and the newest version of each."""


def _celu(node: Node) -> ops.AnyUnaryFunction:
    return ops.UnaryFunction.Celu(alpha=node.float("alpha", 1.0))


def _elu(node: Node) -> ops.AnyUnaryFunction:
    return ops.UnaryFunction.Elu(alpha=node.float("alpha", 1.0))


def _gelu(node: Node) -> ops.AnyUnaryFunction:
    approximate = node.string("approximate", "none")
    if approximate not in ("none", "tanh"):
        node.refuse("CC0202", f"Gelu has no approximation {approximate!r}; it is 'none' or 'tanh'")
    return "Gelu" if approximate == "none" else "GeluTanh"


def _hard_sigmoid(node: Node) -> ops.AnyUnaryFunction:
    view = HardSigmoidView.read(node)
    return ops.UnaryFunction.HardSigmoid(alpha=view.slope, beta=view.offset)


def _is_inf(node: Node) -> ops.AnyUnaryFunction:
    negative, positive = node.int("detect_negative", 1), node.int("detect_positive", 1)
    return ops.UnaryFunction.IsInf(negative=bool(negative), positive=bool(positive))


def _leaky_relu(node: Node) -> ops.AnyUnaryFunction:
    return ops.UnaryFunction.LeakyRelu(alpha=node.float("alpha", 0.01))


def _selu(node: Node) -> ops.AnyUnaryFunction:
    alpha, gamma = node.float("alpha", 1.67326319217681884765625), node.float("gamma", 1.05070102214813232421875)
    return ops.UnaryFunction.Selu(alpha=alpha, gamma=gamma)


def _shrink(node: Node) -> ops.AnyUnaryFunction:
    return ops.UnaryFunction.Shrink(bias=node.float("bias", 0.0), lambd=node.float("lambd", 0.5))


def _swish(node: Node) -> ops.AnyUnaryFunction:
    return ops.UnaryFunction.Swish(alpha=node.float("alpha", 1.0))


def _thresholded_relu(node: Node) -> ops.AnyUnaryFunction:
    return ops.UnaryFunction.ThresholdedRelu(alpha=node.float("alpha", 1.0))


_WITH_ATTRIBUTES: dict[str, tuple[Callable[[Node], ops.AnyUnaryFunction], int]] = {
    "Celu": (_celu, 28),
    "Elu": (_elu, 22),
    "Gelu": (_gelu, 20),
    "HardSigmoid": (_hard_sigmoid, 22),
    "IsInf": (_is_inf, 20),
    "LeakyRelu": (_leaky_relu, 16),
    "Selu": (_selu, 22),
    "Shrink": (_shrink, 9),
    "Swish": (_swish, 24),
    "ThresholdedRelu": (_thresholded_relu, 22),
}
"""Operators with attributes: the function that reads them, and the newest version."""

_FUNCTIONS: dict[str, Callable[[Node], ops.AnyUnaryFunction]] = {
    **{str(function): lambda _, function=function: function for function in _PLAIN},  # type: ignore[misc]
    **{op_type: read for op_type, (read, _) in _WITH_ATTRIBUTES.items()},
}


def function_of(node: Node) -> ops.AnyUnaryFunction | None:
    """The function that a node of the default domain applies to each element; `None` for any other operator."""
    read = _FUNCTIONS.get(node.op_type) if node.domain == "" else None
    return read(node) if read else None


def _unary(node: Node, build: PlanBuilder) -> Value:
    return build(ops.Unary(function=_FUNCTIONS[node.op_type](node)), node.input(0))


for _name, _newest in [*_PLAIN.items(), *((name, newest) for name, (_, newest) in _WITH_ATTRIBUTES.items())]:
    lowers(str(_name), newest=_newest)(_unary)
remark("Shrink", "NaN stays NaN, as in the other activations; onnxruntime gives zero.")
remark("Sign", "NaN stays NaN, even in float16; for float16, onnxruntime gives zero.")


@lowers("Gelu", newest=1, domain="com.microsoft")
def gelu(node: Node, build: PlanBuilder) -> Value:
    """`Gelu` of onnxruntime: the form with the error function."""
    return build(ops.Unary(function="Gelu"), node.input(0))


@lowers("QuickGelu", newest=1, domain="com.microsoft")
def quick_gelu(node: Node, build: PlanBuilder) -> Value:
    """`QuickGelu` of onnxruntime: `x · sigmoid(alpha·x)`."""
    return build(ops.Unary(function=ops.UnaryFunction.Swish(alpha=node.float("alpha", 1.702))), node.input(0))


@lowers("BiasGelu", newest=1, domain="com.microsoft")
def bias_gelu(node: Node, build: PlanBuilder) -> Value:
    """`BiasGelu` of onnxruntime: Gelu of the input plus a bias."""
    total = build(ops.Binary(function="Add"), node.input(0), node.input(1))
    return build(ops.Unary(function="Gelu"), total)


@lowers("FastGelu", newest=1, domain="com.microsoft")
def fast_gelu(node: Node, build: PlanBuilder) -> Value:
    """`FastGelu` of onnxruntime: the tanh form of Gelu, applied to the input plus an optional bias."""
    x = node.input(0)
    if node.has_input(1):
        x = build(ops.Binary(function="Add"), x, node.input(1))
    return build(ops.Unary(function="GeluTanh"), x)
