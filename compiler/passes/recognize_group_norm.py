"""Replaces an InstanceNormalization between two reshapes, and the scales and shifts after it, with GroupNormalization.

It also folds scales and shifts of channels into an InstanceNormalization without reshapes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank, same_shape
from compiler.ir.views.norm import NormView
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["recognize_group_norm"]

_VERSION = 21
"""The first version of GroupNormalization with a scale and a bias for each channel."""

_EXACT_TYPES = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
_GROUPED = Op("Reshape", Var("x"), Var())
_NORMALIZED = Op("InstanceNormalization", _GROUPED, Const("scale"), Const("bias"), name="norm")


@dataclass(frozen=True)
class _Groups:
    """The number of groups, the number of channels in each, and ε."""

    count: int
    size: int
    epsilon: float


class RecognizeGroupNorm(FindingRule[_Groups]):
    """`reshape(InstanceNormalization(reshape(x, [N, G, …])), shape of x)` → `GroupNormalization(x)`."""

    pattern = Op("Reshape", _NORMALIZED, Var())

    def check(self, match: Match) -> _Groups | str:
        """Both shapes have the same batch; the groups divide the channels; the result has the shape of `x`."""
        x, grouped = match["x"], match.node("norm").inputs[0]
        if not same_shape(x, match.root.outputs[0]) or x.shape is None or grouped is None or grouped.shape is None:
            return "the shape of the result may differ from that of the normalized value"
        if x.shape.rank() < 3 or grouped.shape.rank() < 3 or x.shape[0] != grouped.shape[0]:
            return f"{x.shape} is not grouped by channels as {grouped.shape}"
        channels, groups = x.shape[1], match.constant("scale").size
        if not isinstance(channels, int) or channels == 0 or channels % groups or grouped.shape[1] != groups:
            return f"{groups} groups do not divide {channels} channels"
        view = NormView[ir.Value].of(match.node("norm"), complete=True)
        return "an attribute is not supported" if view is None else _Groups(groups, channels // groups, view.epsilon)

    def rewrite(self, match: Match, found: _Groups, new: Rewriter) -> ir.Value:
        """The normalization, with the scale and bias of each group repeated for its channels."""
        repeated = (np.repeat(match.constant(name), found.size) for name in ("scale", "bias"))
        parameters = [new.constant(array, "channels") for array in repeated]
        return new.op(
            "GroupNormalization",
            match["x"],
            *parameters,
            version=_VERSION,
            num_groups=found.count,
            epsilon=found.epsilon,
        )


@dataclass(frozen=True)
class _Parameters:
    """The scale and bias of each channel, in float64."""

    scale: np.ndarray
    bias: np.ndarray


class _FoldConstant(FindingRule[_Parameters]):
    """The base of rules that fold a constant, one number per channel, into the preceding normalization."""

    normalization: ClassVar[Op] = Op(
        ("GroupNormalization", "InstanceNormalization"), Var("x"), Const("scale"), Const("bias"), name="norm"
    )

    def check(self, match: Match) -> _Parameters | str:
        """The constant has one number per channel, and folding it adds no rounding."""
        norm, c = match.node("norm"), match.constant("c")
        if norm.op_type == "GroupNormalization" and norm.version != _VERSION:
            return "its scale has one number for each group"
        if match["x"].dtype not in _EXACT_TYPES:
            return f"the type is {match['x'].dtype}: folding would round again"
        scale, bias = (match.constant(name).astype(np.float64) for name in ("scale", "bias"))
        per_channel = _per_channel(c, rank(match["x"]), scale.size)
        if per_channel is None:
            return f"the constant of shape {list(c.shape)} has more than one number for each channel"
        scale, bias = self.fold(scale, bias, per_channel)
        is_finite = np.isfinite(scale).all() and np.isfinite(bias).all()
        return _Parameters(scale, bias) if is_finite else "the folded numbers are not finite"

    @abstractmethod
    def fold(self, scale: np.ndarray, bias: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scale and bias after folding the constant."""

    def rewrite(self, match: Match, found: _Parameters, new: Rewriter) -> ir.Value:
        """The normalization with the folded scale and bias."""
        kind = match.constant("scale").dtype
        parameters = ((found.scale, "scale"), (found.bias, "bias"))
        return new.like(
            match.node("norm"), match["x"], *(new.constant(array.astype(kind), name) for array, name in parameters)
        )


class TakeChannelScale(_FoldConstant):
    """`(normalized(x) · s + b) · c` → `normalized(x) · (s · c) + b · c`."""

    pattern = Op("Mul", _FoldConstant.normalization, Const("c"))

    def fold(self, scale: np.ndarray, bias: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scale and the bias, both multiplied by `c`."""
        return scale * c, bias * c


class TakeChannelBias(_FoldConstant):
    """`(normalized(x) · s + b) + c` → `normalized(x) · s + (b + c)`."""

    pattern = Op("Add", _FoldConstant.normalization, Const("c"))

    def fold(self, scale: np.ndarray, bias: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scale, and the sum of the bias and `c`."""
        return scale, bias + c


def _per_channel(c: np.ndarray, result_rank: int | None, channels: int) -> np.ndarray | None:
    """The constant as one number per channel; `None` if it does not broadcast along axis 1 of the result alone."""
    if result_rank is None or c.ndim > result_rank:
        return None
    if c.size == 1:
        return np.full(channels, c.item(), np.float64)
    padded = [1] * (result_rank - c.ndim) + list(c.shape)
    return c.astype(np.float64).ravel() if padded[1] == channels == c.size else None


recognize_group_norm = rules_pass(
    "recognize_group_norm",
    [RecognizeGroupNorm(), TakeChannelScale(), TakeChannelBias()],
    result="group norm parts found",
    requires=frozenset({"shapes"}),
)
