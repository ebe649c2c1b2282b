"""Folds batch normalizations and per-channel scales and shifts into the weights of the preceding operator.

The pass computes the weights in float64 and rounds once.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of
from compiler.ir.views.norm import BatchNormView
from compiler.rewrite.linear import Linear
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["Affine", "FoldBatchNorm", "FoldedNorm", "fold_batch_norm", "scale_and_shift"]

Affine = tuple[np.ndarray, np.ndarray]

_LINEAR = Op(("Conv", "ConvTranspose", "Gemm", "MatMul"), Var("x"), Const("w"), rest=True, name="linear")


@dataclass(frozen=True)
class FoldedNorm:
    """The linear operator, and the scale and shift of each channel that it absorbs."""

    linear: Linear
    scale: np.ndarray
    shift: np.ndarray


class _FoldAffine(FindingRule[FoldedNorm]):
    """The base of rules for `y · scale + shift`, with one number per channel, after a linear operator."""

    @abstractmethod
    def affine(self, match: Match, linear: Linear) -> Affine | str:
        """The scale and shift of each channel; or the reason why there are none."""

    def check(self, match: Match) -> FoldedNorm | str:
        """The weights are float32 or float64 constants, and the folded weights are finite."""
        linear = Linear.of(match.node("linear"))
        if isinstance(linear, str):
            return linear
        found = self.affine(match, linear)
        return found if isinstance(found, str) else linear.why_not(*found) or FoldedNorm(linear, *found)

    def rewrite(self, match: Match, found: FoldedNorm, new: Rewriter) -> ir.Value:
        """The linear operator with folded weights."""
        return found.linear.folded(found.scale, found.shift, new)


class FoldBatchNorm(_FoldAffine):
    """`BatchNormalization(linear(x))` → `linear'(x)`."""

    pattern = Op("BatchNormalization", _LINEAR, Const("scale"), Const("bias"), Const("mean"), Const("var"))

    def affine(self, match: Match, linear: Linear) -> Affine | str:
        """The channels, axis 1, are the channels of the weights: in a matrix product, axis 1 is the last axis."""
        if linear.output_rank is None or linear.output_rank + linear.channel_axis != 1:
            return "the channels are not those of the weights"
        return scale_and_shift(match.root)


class _FoldConstant(_FoldAffine):
    def affine(self, match: Match, linear: Linear) -> Affine | str:
        """The constant has one number, or one per channel."""
        constant = match.constant("c")
        found = linear.per_channel(constant)
        if found is None:
            return f"the constant of shape {list(constant.shape)} has more than one number for each channel"
        with np.errstate(divide="ignore"):
            return self.of_constant(found)

    @abstractmethod
    def of_constant(self, c: np.ndarray) -> Affine:
        """The scale and shift that are equivalent to the operation with `c`."""


class FoldAdd(_FoldConstant):
    """`linear(x) + c` → `linear'(x)`."""

    pattern = Op("Add", _LINEAR, Const("c"))

    def of_constant(self, c: np.ndarray) -> Affine:
        """`y · 1 + c`."""
        return np.ones_like(c), c


class FoldSub(_FoldConstant):
    """`linear(x) - c` → `linear'(x)`."""

    pattern = Op("Sub", _LINEAR, Const("c"))

    def of_constant(self, c: np.ndarray) -> Affine:
        """`y · 1 - c`."""
        return np.ones_like(c), -c


class FoldMul(_FoldConstant):
    """`linear(x) · c` → `linear'(x)`."""

    pattern = Op("Mul", _LINEAR, Const("c"))

    def of_constant(self, c: np.ndarray) -> Affine:
        """`y · c + 0`."""
        return c, np.zeros_like(c)


class FoldDiv(_FoldConstant):
    """`linear(x) / c` → `linear'(x)`."""

    pattern = Op("Div", _LINEAR, Const("c"))

    def of_constant(self, c: np.ndarray) -> Affine:
        """`y · (1/c) + 0`."""
        return 1 / c, np.zeros_like(c)


class FoldNeg(_FoldAffine):
    """`-linear(x)` → `linear'(x)`."""

    pattern = Op("Neg", _LINEAR)

    def affine(self, match: Match, linear: Linear) -> Affine | str:
        """`y · -1 + 0`."""
        return -np.ones(linear.channels), np.zeros(linear.channels)


def scale_and_shift(node: ir.Node) -> Affine | str:
    """The float64 scale and shift of a BatchNormalization with constant parameters; or the reason why there are none.

    `scale = γ / √(var + ε)` and `shift = β - mean · scale`.
    """
    view = BatchNormView[ir.Value].of(node, complete=True)
    if view is None:
        return "an attribute is not supported"
    if view.is_training or any(value.uses() or value.is_graph_output() for value in node.outputs[1:]):
        return "it computes the statistics of its input"
    if not view.is_spatial:
        return "it has statistics for each position"
    arrays = [constant_of(value) for value in node.inputs[1:5]]
    parameters = [array.astype(np.float64) for array in arrays if array is not None]
    if len(parameters) < 4:
        return "its parameters are computed"
    if any(array.shape != (parameters[0].size,) for array in parameters):
        return "its parameters are not lists of one length"
    gamma, beta, mean, var = parameters
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = gamma / np.sqrt(var + view.epsilon)
        shift = beta - mean * scale
    if not np.isfinite(scale).all() or not np.isfinite(shift).all():
        return "its scale is not finite"
    return scale, shift


fold_batch_norm = rules_pass(
    "fold_batch_norm",
    [FoldBatchNorm(), FoldAdd(), FoldSub(), FoldMul(), FoldDiv(), FoldNeg()],
    result="channel scales folded",
    requires=frozenset({"shapes"}),
)
