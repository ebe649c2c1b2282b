"""Shared parts of the rules for normalizations over the last axes: patterns of means and roots, scales, biases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, static_shape
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Pattern, Var
from compiler.rewrite.reduction import trailing_axis
from compiler.rewrite.rule import FindingRule, Rewriter, Rule

__all__ = ["Recognize", "TakeBias", "TakeScale", "inverse_of", "mean_of", "normalized_shape", "root_of", "square_of"]


def square_of(of: Pattern) -> Pattern:
    """`of²`."""
    return AnyOf(Op("Pow", of, Const(equal=2.0)), Op("Mul", of, of))


def mean_of(of: Pattern, name: str) -> Pattern:
    """The mean of `of`, with the axes as an attribute or an input."""
    return Op("ReduceMean", of, Var(optional=True), name=name)


def root_of(of: Pattern) -> Pattern:
    """`√of`."""
    return AnyOf(Op("Sqrt", of), Op("Pow", of, Const(equal=0.5)))


def inverse_of(of: Pattern) -> Pattern:
    """`1 / of`."""
    return AnyOf(Op("Reciprocal", of), Op("Div", Const(equal=1.0), of))


def normalized_shape(x: ir.Value, axis: int) -> tuple[int, ...] | None:
    """The sizes of the axes from the negative `axis` on; `None` if one is not a number."""
    if x.shape is None or len(x.shape) < -axis:
        return None
    dims = x.shape.dims[axis:]
    return tuple(dim for dim in dims if isinstance(dim, int)) if all(isinstance(dim, int) for dim in dims) else None


@dataclass(frozen=True)
class Normalized:
    """The first of the normalized last axes, as a negative number, and an array of ones of their shape."""

    axis: int
    ones: np.ndarray


class Recognize(FindingRule[Normalized]):
    """The base of rules that find a normalization of `x`. The nodes `means` reduce the same last axes."""

    operator: ClassVar[str]
    version: ClassVar[int]
    means: ClassVar[tuple[str, ...]]

    def check(self, match: Match) -> Normalized | str:
        """The means reduce the last axes, whose sizes are known; ε is one number."""
        axis = trailing_axis(*(match.node(name) for name in self.means))
        if isinstance(axis, str):
            return axis
        if match.constant("epsilon").size != 1:
            return "ε is not one number"
        kind = match["x"].dtype
        if kind is None or not kind.is_floating_point():
            return f"the type is {kind}"
        shape = normalized_shape(match["x"], axis)
        return (
            "the sizes of the axes are not known" if shape is None else Normalized(axis, np.ones(shape, kind.numpy()))
        )

    def rewrite(self, match: Match, found: Normalized, new: Rewriter) -> ir.Value:
        """The normalization with a scale of ones. Other rules fold a scale and a bias into it."""
        ones, epsilon = new.constant(found.ones, "ones"), float(match.constant("epsilon").item())
        return new.op(self.operator, match["x"], ones, version=self.version, axis=found.axis, epsilon=epsilon)


class TakeScale(Rule):
    """The base of `normalized(x, 1) · scale` → `normalized(x, scale)`. The pattern names `norm` and `scale`."""

    def check(self, match: Match) -> str | None:
        """The normalization has no scale or bias yet, and the new scale has the shape of the normalized axes."""
        node = match.node("norm")
        ones = constant_of(node.inputs[1])
        if ones is None or not (ones == 1).all() or len(node.inputs) > 2:
            return "it has a scale or bias already"
        return _parameter_problem(match["scale"], node)

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The normalization with the scale."""
        node = match.node("norm")
        scale = _parameter(match["scale"], node, new)
        return new.like(node, node.inputs[0], scale)


class TakeBias(Rule):
    """The base of `normalized(x, scale) + bias` → `normalized(x, scale, bias)`. The pattern names `norm` and `bias`."""

    def check(self, match: Match) -> str | None:
        """The normalization has no bias yet, and the new bias has the shape of the normalized axes."""
        node = match.node("norm")
        return "it has a bias already" if len(node.inputs) > 2 else _parameter_problem(match["bias"], node)

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The normalization with the bias."""
        node = match.node("norm")
        return new.like(node, *node.inputs, _parameter(match["bias"], node, new))


def _parameter_problem(value: ir.Value, norm: ir.Node) -> str | None:
    """The reason why a value cannot be the scale or bias: apart from leading ones, its shape must be the scale's."""
    expected, array = static_shape(norm.inputs[1]), constant_of(value)
    shape = static_shape(value) if array is None else _without_ones(array.shape, len(expected or ()))
    return None if shape == expected else f"{value.name!r} has the shape {value.shape}, not {list(expected or ())}"


def _parameter(value: ir.Value, norm: ir.Node, new: Rewriter) -> ir.Value:
    array, expected = constant_of(value), static_shape(norm.inputs[1])
    if array is None or expected is None or array.shape == expected:
        return value
    return new.constant(array.reshape(expected), value.name or "parameter")


def _without_ones(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    extra = max(len(shape) - rank, 0)
    return shape[extra:] if all(size == 1 for size in shape[:extra]) else shape
