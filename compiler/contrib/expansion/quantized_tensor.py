"""Tensors of 8-bit codes with one scale and one zero point: a code stands for `(code - zero point) · scale`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body
from compiler.contrib.expansion.node import Node
from compiler.ir.graph import rank
from compiler.ir.views.quantize import CODES

__all__ = ["QuantizedTensor", "rounded"]


@dataclass(frozen=True)
class QuantizedTensor:
    """A quantized operand, or a quantized result, which has no `value` yet: its codes, scale and zero point."""

    value: ir.Value | None
    scale: ir.Value
    zero: ir.Value
    dtype: ir.DataType

    @staticmethod
    def read(node: Node, new: Body, index: int, name: str) -> QuantizedTensor:
        """The operand in input `index`, and its scale and zero point in the next two."""
        dtype = node.dtype(index, name, *CODES)
        return QuantizedTensor(node.input(index), *_parameters(node, new, index + 1, dtype), dtype)

    @staticmethod
    def of_result(node: Node, new: Body, index: int, like: int, name: str) -> QuantizedTensor:
        """The result, whose scale is input `index`. Its codes have the type of input `like`, named `name`."""
        dtype = node.dtype(like, name, *CODES)
        return QuantizedTensor(None, *_parameters(node, new, index, dtype), dtype)

    def dequantize(self, new: Body) -> ir.Value:
        """The numbers that the operand stands for."""
        return new.op("DequantizeLinear", self.value, self.scale, self.zero)

    def quantize(self, new: Body, numbers: ir.Value) -> ir.Value:
        """The codes of numbers: `round(number / scale) + zero point`."""
        return new.op("QuantizeLinear", numbers, self.scale, self.zero)

    def as_float(self, new: Body) -> ir.Value:
        """The codes themselves as float32."""
        return new.op("Cast", self.value, to=FLOAT)

    def zero_as_float(self, new: Body) -> ir.Value:
        """The zero point as float32."""
        return new.op("Cast", self.zero, to=FLOAT)


def _parameters(node: Node, new: Body, index: int, dtype: ir.DataType) -> tuple[ir.Value, ir.Value]:
    """The scale in input `index`, and the zero point after it or 0, both without dimensions."""
    scale, zero = _single(node, new, index), node.optional(index + 1)
    return scale, new.scalar(0, dtype) if zero is None else _single(node, new, index + 1)


def _single(node: Node, new: Body, index: int) -> ir.Value:
    """The only element of an input."""
    value = node.input(index)
    return value if rank(value) == 0 else new.op("Reshape", value, new.numbers())


def rounded(new: Body, numbers: ir.Value, dtype: ir.DataType) -> ir.Value:
    """The numbers, rounded to the nearest code of a type; ties go to the even one."""
    limits = np.iinfo(dtype.numpy())
    low, high = (new.scalar(int(limit), FLOAT) for limit in (limits.min, limits.max))
    return new.op("Cast", new.op("Clip", new.op("Round", numbers), low, high), to=dtype)
