"""Distances between all pairs of two sets of points."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op

from compiler.frontend.translations.parts import axes, constant

__all__ = ["TRANSLATIONS"]


def cdist(x1: Any, x2: Any, p: float, compute_mode: int | None) -> Any:
    """The p-norm of each difference of a point of `[…, n, width]` and a point of `[…, m, width]`: `[…, n, m]`.

    The differences take n · m · width elements of memory. Products instead of differences would take less, but lose
    the digits of close points.
    """
    difference = op.Abs(op.Sub(op.Unsqueeze(x1, axes([-2])), op.Unsqueeze(x2, axes([-3]))))
    last = axes([-1])
    if p == 0:
        differs = op.Not(op.Equal(difference, constant(0, x1)))
        return op.Cast(op.ReduceSum(op.Cast(differs, to=ir.DataType.FLOAT), last, keepdims=0), to=x1.dtype)
    if p == 1:
        return op.ReduceSum(difference, last, keepdims=0)
    if p == 2:
        return op.Sqrt(op.ReduceSum(op.Mul(difference, difference), last, keepdims=0))
    if p == math.inf:
        return op.ReduceMax(difference, last, keepdims=0)
    powers = op.ReduceSum(op.Pow(difference, constant(p, x1)), last, keepdims=0)
    return op.Pow(powers, constant(1 / p, x1))


TRANSLATIONS = {"aten::_cdist_forward": cdist}
