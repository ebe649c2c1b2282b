"""Linear operators with constant weights, as a function for each output channel: `y[c] = w[c] · x + b[c]`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank
from compiler.ir.views.product import ProductView
from compiler.ir.views.window import WindowView
from compiler.rewrite.rule import Rewriter

__all__ = ["Linear"]

_EXACT_TYPES = frozenset([ir.DataType.FLOAT, ir.DataType.DOUBLE])
_CONVOLUTIONS = ("Conv", "ConvTranspose")


@dataclass(frozen=True)
class Linear:
    """A Conv, ConvTranspose, Gemm or MatMul with constant weights and a constant bias, if any.

    `weights` have the node's layout: Conv `[M, C/group, …]`, ConvTranspose `[C, M/group, …]`, MatMul `[K, M]`, Gemm
    `[K, M]` or `[M, K]`. `bias` is `[M]`, and zero if the node has none.
    """

    node: ir.Node
    weights: np.ndarray
    bias: np.ndarray
    output_rank: int | None

    @staticmethod
    def of(node: ir.Node) -> Linear | str:
        """The view of a node; or the reason why there is none."""
        weights = constant_of(node.inputs[1])
        if weights is None:
            return "the weights are not constant"
        if ir.DataType.from_numpy(weights.dtype) not in _EXACT_TYPES:
            return f"the weights are {weights.dtype}: folding would round them again"
        if weights.ndim < 2 or (node.op_type == "MatMul" and weights.ndim > 2):
            return f"the weights have rank {weights.ndim}"
        is_convolution = node.op_type in _CONVOLUTIONS
        output_rank = weights.ndim if is_convolution else 2 if node.op_type == "Gemm" else rank(node.outputs[0])
        channels = _channels(node, weights)
        bias = _bias(node, channels)
        if bias is None:
            return "the bias is not constant, or has more than one number for each channel"
        return Linear(node, weights, bias, output_rank)

    @property
    def channels(self) -> int:
        """The number of output channels."""
        return len(self.bias)

    @property
    def channel_axis(self) -> int:
        """The axis of the channels in the output, as a negative number."""
        return -(self.weights.ndim - 1) if self.node.op_type in _CONVOLUTIONS else -1

    def per_channel(self, factor: np.ndarray) -> np.ndarray | None:
        """A constant as one number per channel; `None` if it does not broadcast along the output's channels alone."""
        if factor.size == 1 and factor.ndim <= (self.output_rank or 1):
            return np.full(self.channels, factor.item(), np.float64)
        if self.output_rank is None and factor.ndim > 1:
            return None
        expected = [1] * factor.ndim
        if factor.ndim < -self.channel_axis or factor.ndim > (self.output_rank or 1):
            return None
        expected[self.channel_axis] = self.channels
        return factor.astype(np.float64).ravel() if list(factor.shape) == expected else None

    def why_not(self, scale: np.ndarray, shift: np.ndarray) -> str | None:
        """The reason why the node cannot absorb `y · scale + shift`; `None` if it can."""
        if self.node.op_type == "MatMul" and self.output_rank != 2 and shift.any():
            return "MatMul has no bias here: its result is not a matrix"
        finite = all(np.isfinite(array).all() for array in self._fold(scale, shift))
        return None if finite else "the folded weights are not finite"

    def folded(self, scale: np.ndarray, shift: np.ndarray, new: Rewriter) -> ir.Value:
        """One node for the node's result times `scale` plus `shift`, which have one number per channel."""
        weights, bias = self._fold(scale, shift)
        stem = self.node.outputs[0].name or self.node.op_type
        inputs = [self.node.inputs[0], new.constant(weights, f"{stem}.weight")]
        op_type, attributes = self.node.op_type, dict[str, Any](self.node.attributes)
        if op_type == "MatMul" and bias.any():
            op_type = "Gemm"
        if op_type == "Gemm":
            attributes.pop("beta", None)
        if op_type == "Gemm" or bias.any() or len(self.node.inputs) > 2:
            inputs.append(new.constant(bias, f"{stem}.bias"))
        result: ir.Value = new.op(op_type, *inputs, version=self.node.version, **attributes)
        return result

    def _fold(self, scale: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The weights times `scale`, and the bias times `scale` plus `shift`, rounded once to the weights' type."""
        kind = self.weights.dtype
        with np.errstate(over="ignore", invalid="ignore"):
            return self._scaled(scale).astype(kind, copy=False), (self.bias * scale + shift).astype(kind)

    def _scaled(self, scale: np.ndarray) -> np.ndarray:
        weights: np.ndarray = self.weights
        if (scale == 1).all():  # as for a bias alone: large weights then stay in their file
            return weights
        if self.node.op_type == "ConvTranspose":
            groups = _group(self.node)
            grouped = weights.reshape(groups, -1, weights.shape[1], math.prod(weights.shape[2:]))
            weights = (grouped * scale.reshape(groups, 1, -1, 1)).reshape(weights.shape)
        elif self.node.op_type == "Conv" or _is_transposed(self.node):
            weights = weights * scale.reshape(-1, *[1] * (weights.ndim - 1))
        else:
            weights = weights * scale
        return weights


def _channels(node: ir.Node, weights: np.ndarray) -> int:
    first, second = int(weights.shape[0]), int(weights.shape[1])
    if node.op_type == "ConvTranspose":
        return second * _group(node)
    return first if node.op_type == "Conv" or _is_transposed(node) else second


def _group(node: ir.Node) -> int:
    view = WindowView[ir.Value].of(node)
    return 1 if view is None else view.groups


def _is_transposed(node: ir.Node) -> bool:
    view = ProductView[ir.Value].of(node)
    return view is not None and view.trans_b


def _bias(node: ir.Node, channels: int) -> np.ndarray | None:
    """The bias, times Gemm's `beta`, with one number per channel; `None` if it is not a constant of this form."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if given is None:
        return np.zeros(channels)
    bias = constant_of(given)
    if bias is None or bias.size not in (1, channels) or bias.shape[:-1] not in ((), (1,)):
        return None
    if bias.size == 1 and channels != 1 and node.op_type in _CONVOLUTIONS:
        return None
    view = ProductView[ir.Value].of(node)
    return np.broadcast_to(bias.astype(np.float64).ravel() * (1.0 if view is None else view.beta), [channels])
