"""Scales and zero points of codes: the integers that DequantizeLinear reads and QuantizeLinear returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank, sole_user
from compiler.ir.views.clip import ClipView
from compiler.ir.views.quantize import CODES, QuantizeView

__all__ = [
    "QuantParams",
    "Target",
    "are_normal",
    "bounded",
    "quant_params_from",
    "quant_params_of",
    "single_scale_params_of",
    "target_from",
    "target_of",
]

Array = np.ndarray[Any, Any]

_NORMAL = np.finfo(np.float32).tiny, np.float32(2.0**96)
"""The range of scales for which codes, and 32-bit sums of codes, represent normal float32 numbers."""


@dataclass(frozen=True)
class QuantParams:
    """The result of a DequantizeLinear with constant scales and zero points: `(value − zero) · scale`.

    `scale` and `zero` are scalars, or `[size]` for the value's `axis`.
    """

    node: ir.Node
    value: ir.Value
    scale: Array
    zero: Array
    axis: int | None
    """The axis of the scales; `None` if there is one scale."""


@dataclass(frozen=True)
class Target:
    """The result of a QuantizeLinear with constant parameters: `clamp(round(x ÷ scale) + zero, low, high)`."""

    node: ir.Node
    scale: Array
    zero: Array
    low: int
    high: int

    def code(self, number: float) -> int:
        """The code that represents a number."""
        with np.errstate(over="ignore"):
            found = np.rint(np.float32(number) / self.scale) + np.float32(self.zero)
        return int(np.clip(found, self.low, self.high))

    def same_as(self, codes: QuantParams) -> bool:
        """Whether `codes` have the same scale and zero point."""
        one, other = (codes.scale, codes.zero), (self.scale, self.zero)
        return codes.axis is None and all(a.dtype == b.dtype and a == b for a, b in zip(one, other, strict=True))


def quant_params_of(value: ir.Value | None) -> QuantParams | None:
    """The codes, scales and zero points of the DequantizeLinear that produces the value.

    The result is `None` without such a node, if the codes do not have 8 or 32 bits, or if the scales are not `float32`
    constants: one for all codes, or one for each index of an axis.
    """
    node = None if value is None else value.producer()
    if node is None or node.op_identifier() != ("", "DequantizeLinear", "") or node.inputs[0] is None:
        return None
    view = _plain(node)
    found = None if view is None else _numbers(view.scale, view.zero, node.inputs[0].dtype)
    if view is None or found is None or node.inputs[0].dtype not in (*CODES, ir.DataType.INT32):
        return None
    return _codes(node, node.inputs[0], *found, view.axis)


def single_scale_params_of(value: ir.Value | None) -> QuantParams | None:
    """Like `quant_params_of`, but also `None` if the codes do not have 8 bits, or have several scales."""
    codes = quant_params_of(value)
    return None if codes is None or codes.axis is not None or codes.value.dtype not in CODES else codes


def target_of(node: ir.Node) -> Target | None:
    """The target of a QuantizeLinear to 8 bits; `None` if its scale is not one constant number."""
    view = _plain(node)
    found = None if view is None else _numbers(view.scale, view.zero, node.outputs[0].dtype)
    return None if found is None else _target(node, *found)


def quant_params_from(node: ir.Node, index: int, axis: int | None) -> QuantParams | None:
    """The codes in input `index` of a node, with the scales and zero points in the two inputs after it.

    The result is `None` if the codes do not have 8 bits, or if the scales are not `float32` constants: one for all
    codes, or one for each index of `axis`.
    """
    value = node.inputs[index]
    found = None if value is None else _numbers(node.inputs[index + 1], node.inputs[index + 2], value.dtype)
    if value is None or found is None or value.dtype not in CODES:
        return None
    return _codes(node, value, *found, axis)


def target_from(node: ir.Node, index: int) -> Target | None:
    """The target of a node whose inputs `index` and `index + 1` are its scale and zero point."""
    found = _numbers(node.inputs[index], node.inputs[index + 1], node.outputs[0].dtype)
    return None if found is None else _target(node, *found)


def _codes(node: ir.Node, value: ir.Value, scale: Array, zero: Array, axis: int | None) -> QuantParams | None:
    """Codes with one scale, or with one for each index of an axis, which may be negative."""
    if scale.size == 1:
        return QuantParams(node, value, scale.reshape(()), zero.reshape(()), None)
    size = rank(value)
    if axis is None or scale.ndim != 1 or size is None or value.shape is None or not -size <= axis < size:
        return None
    dim = value.shape[axis]
    return QuantParams(node, value, scale, zero, axis % size) if not isinstance(dim, int) or dim == scale.size else None


def _target(node: ir.Node, scale: Array, zero: Array) -> Target | None:
    if scale.size != 1 or node.outputs[0].dtype not in CODES:
        return None
    limits = np.iinfo(zero.dtype)
    return Target(node, scale.reshape(()), zero.reshape(()), int(limits.min), int(limits.max))


def _plain(node: ir.Node) -> QuantizeView[ir.Value] | None:
    """The view of a node without blocks that computes in float32, and whose operands determine its types."""
    view = QuantizeView[ir.Value].of(node, complete=True)
    return None if view is None or view.block or view.to is not None or view.precision is not None else view


def _numbers(scales: ir.Value | None, zeros: ir.Value | None, dtype: ir.DataType | None) -> tuple[Array, Array] | None:
    """Constant normal float32 scales and as many constant zero points; `None` for any others."""
    scale, zero = constant_of(scales), constant_of(zeros)
    if dtype is None or scale is None or scale.dtype != np.float32 or (zeros is not None and zero is None):
        return None
    if not are_normal(scale):
        return None
    if zero is None:
        zero = np.zeros(scale.shape, dtype.numpy())
    return (scale, zero) if zero.dtype == dtype.numpy() and zero.size == scale.size else None


def are_normal(scales: Array) -> bool:
    """Whether scales are in the range `_NORMAL`, so that results are neither subnormal nor infinite."""
    least, most = _NORMAL
    return bool(((least <= scales) & (scales < most)).all())


def bounded(target: Target) -> tuple[ir.Value | None, Target, list[ir.Node]]:
    """The value before Relu and Clip nodes, the target with the limits that replace these nodes, and the nodes."""
    value, nodes = target.node.inputs[0], list[ir.Node]()
    while value is not None and (node := value.producer()) is not None and sole_user(value) is not None:
        bounds = _bounds(node)
        if bounds is None:
            break
        low, high = (target.code(bound) for bound in bounds)
        if low > high:
            break
        target, value = replace(target, low=low, high=high), node.inputs[0]
        nodes.append(node)
    return value, target, nodes


def _bounds(node: ir.Node) -> tuple[float, float] | None:
    """The smallest and largest result of a Relu or Clip; `None` if one is unknown or NaN."""
    if node.op_identifier() == ("", "Relu", ""):
        return 0.0, np.inf
    view = ClipView[ir.Value].of(node, complete=True)
    if view is None:
        return None
    pairs = (view.low, -np.inf), (view.high, np.inf)
    low, high = (default if bound is None else bound.number for bound, default in pairs)
    return None if low is None or high is None or np.isnan([low, high]).any() else (low, high)
