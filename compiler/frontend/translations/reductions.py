"""Reductions: whether all or any elements are true, and the median."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from compiler.frontend.translations.parts import axes, constant, is_float, positive

__all__ = ["TRANSLATIONS"]


def is_all_true(self: Any) -> Any:
    """Whether all booleans are true."""
    return op.Cast(op.ReduceMin(_numbers(self), keepdims=0), to=ir.DataType.BOOL)


def is_any_true(self: Any) -> Any:
    """Whether one of the booleans is true."""
    return op.Cast(op.ReduceMax(_numbers(self), keepdims=0), to=ir.DataType.BOOL)


def _numbers(self: Any) -> Any:
    return op.Cast(op.Reshape(self, axes([-1])), to=ir.DataType.INT32)


def median(self: Any) -> Any:
    """The median of all elements; of an even number, the smaller one of the two in the middle; NaN if one is NaN."""
    return _median(self, op.Reshape(self, axes([-1])), 0, keepdim=False)[0]


def median_dim(self: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
    """The medians along an axis, and their indices."""
    if len(self.shape) == 0:
        return op.Identity(self), op.Constant(value=ir.tensor(0, dtype=ir.DataType.INT64))
    return _median(self, self, positive(dim, self), keepdim=keepdim)


def _median(argument: Any, tensor: Any, dim: int, *, keepdim: bool) -> tuple[Any, Any]:
    """The same of a tensor that has the dtype of `argument`."""
    size = op.Gather(op.Shape(tensor), axes([dim]))
    count = op.Div(op.Add(size, axes([1])), axes([2]))
    values, indices = op.TopK(tensor, count, axis=dim, largest=0, sorted=1)
    last = op.Sub(count, axes([1]))
    value, index = op.Gather(values, last, axis=dim), op.Gather(indices, last, axis=dim)
    if is_float(argument):
        is_nan = op.Cast(op.IsNaN(tensor), to=ir.DataType.INT32)
        has_nan = op.Cast(op.ReduceMax(is_nan, axes([dim]), keepdims=1), to=ir.DataType.BOOL)
        value = op.Where(has_nan, constant(math.nan, argument), value)
        index = op.Where(has_nan, op.ArgMax(is_nan, axis=dim, keepdims=1), index)
    return (value, index) if keepdim else (op.Squeeze(value, axes([dim])), op.Squeeze(index, axes([dim])))


TRANSLATIONS = {
    "aten::_is_all_true": is_all_true,
    "aten::_is_any_true": is_any_true,
    "aten::median": median,
    "aten::median.dim": median_dim,
}
