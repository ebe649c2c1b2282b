"""Elementwise operators: the hypotenuse, shifts of bits, and the randomized leaky ReLU in evaluation mode."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from compiler.frontend.translations.parts import Untranslatable, constant

__all__ = ["TRANSLATIONS"]

_UNSIGNED = {
    ir.DataType.INT8: ir.DataType.UINT8,
    ir.DataType.INT16: ir.DataType.UINT16,
    ir.DataType.INT32: ir.DataType.UINT32,
    ir.DataType.INT64: ir.DataType.UINT64,
}
"""ONNX shifts only unsigned integers."""


def hypot(self: Any, other: Any) -> Any:
    """The root √(self² + other²). The function divides first, because squares of large numbers overflow."""
    one, other_one = op.Abs(self), op.Abs(other)
    high, low = op.Max(one, other_one), op.Min(one, other_one)
    divisor = op.Where(op.Equal(high, constant(0, self)), constant(1, self), high)
    ratio = op.Div(low, divisor)
    length = op.Mul(high, op.Sqrt(op.Add(op.Mul(ratio, ratio), constant(1, self))))
    infinity = constant(math.inf, self)  # also beside NaN
    return op.Where(op.Or(op.Equal(one, infinity), op.Equal(other_one, infinity)), infinity, length)


def left_shift(self: Any, other: Any) -> Any:
    """The number self · 2^other, without the bits that do not fit. A negative or too large count gives 0."""
    zero = constant(0, self)
    is_out = _is_out(self, other)
    shifted = _shifted(self, op.Where(is_out, zero, other), "LEFT")
    return op.Where(is_out, zero, shifted)


def right_shift(self: Any, other: Any) -> Any:
    """The number ⌊self / 2^other⌋. A negative count, or one that is too large, shifts all bits but that of the sign."""
    if self.dtype not in _UNSIGNED:
        is_out, zero = _is_out(self, other), constant(0, self)
        return op.Where(is_out, zero, _shifted(self, op.Where(is_out, zero, other), "RIGHT"))
    count = op.Where(_is_out(self, other), constant(self.dtype.bitwidth - 1, self), other)
    is_negative = op.Less(self, constant(0, self))
    # The complement of a negative number has a zero in front, as the unsigned shift expects.
    shifted = _shifted(op.Where(is_negative, op.BitwiseNot(self), self), count, "RIGHT", self.dtype)
    return op.Where(is_negative, op.BitwiseNot(shifted), shifted)


def _is_out(self: Any, count: Any) -> Any:
    return op.Or(op.Less(count, constant(0, self)), op.GreaterOrEqual(count, constant(self.dtype.bitwidth, self)))


def _shifted(self: Any, count: Any, direction: str, dtype: ir.DataType | None = None) -> Any:
    dtype = self.dtype if dtype is None else dtype
    unsigned = _UNSIGNED.get(dtype, dtype)
    bits = op.BitShift(op.Cast(self, to=unsigned), op.Cast(count, to=unsigned), direction=direction)
    return op.Cast(bits, to=dtype)


def rrelu(self: Any, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, generator: Any = None) -> Any:
    """The leaky ReLU with the mean of both slopes."""
    if training:
        raise Untranslatable("in training mode, rrelu draws its slopes at random")
    return op.LeakyRelu(self, alpha=(lower + upper) / 2)


TRANSLATIONS = {
    "aten::hypot": hypot,
    "aten::__lshift__.Tensor": left_shift,
    "aten::__rshift__.Tensor": right_shift,
    "aten::bitwise_left_shift.Tensor": left_shift,
    "aten::bitwise_right_shift.Tensor": right_shift,
    "aten::rrelu": rrelu,
}
