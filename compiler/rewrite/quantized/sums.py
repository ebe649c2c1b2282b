"""Sums of products of 8-bit codes: integer biases, and a check that the sums fit 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of
from compiler.rewrite.quantized.params import QuantParams, Target, quant_params_of

__all__ = ["bias_units", "fit"]

Array = np.ndarray[Any, Any]
_ROUNDING = 2.0**-22
"""The largest relative difference that two roundings to float32 cause."""
_MOST_SHIFT = 2.0**-6
"""The largest shift of a result by the rounded bias, in codes. It changes only codes this close to a tie."""


def bias_units(given: ir.Value | None, unit: Array, outputs: int, target: Target | None) -> Array | str | None:
    """The bias as `int32 [outputs]` in multiples of `unit`, which is a scalar or `[outputs]`; `None` without a bias.

    Rounding to a multiple must change the bias by at most float32's rounding error or, with a target, the result by at
    most 1/64 of a code. Otherwise, or if the bias does not have one number for each output, the result is the reason.
    """
    if given is None:
        return None
    numbers = _numbers(given)
    if numbers is None:
        return "the bias is not constant"
    if numbers.shape not in ((), (1,), (1, 1), (outputs,), (1, outputs)):
        return "the bias does not have one number for each output"
    units = _units(numbers, unit.astype(np.float64), target)
    if isinstance(units, str):
        return units
    return np.ascontiguousarray(np.broadcast_to(units.astype(np.int32).reshape(-1), (outputs,)))


def _numbers(given: ir.Value) -> Array | None:
    """The numbers of a constant bias, which may be dequantized from codes; `None` if it is not constant."""
    codes = quant_params_of(given)
    if codes is None:
        return constant_of(given)
    array = constant_of(codes.value)
    if array is None or codes.axis not in (None, array.ndim - 1):
        return None
    return (array.astype(np.float64) - codes.zero) * codes.scale


def _units(numbers: Array, unit: Array, target: Target | None) -> Array | str:
    if numbers.dtype == np.int32:
        return numbers
    with np.errstate(all="ignore"):  # the comparison rejects numbers that are not finite
        exact = numbers.astype(np.float64) / unit
        units = np.rint(exact)
        near = np.abs(exact) * _ROUNDING
        if target is not None:
            near = np.maximum(near, _MOST_SHIFT * float(target.scale) / unit)
        if not (np.abs(units - exact) <= near).all():
            return "the bias is too fine for the products' unit"
    return units if (np.abs(units) < 2**31).all() else "the bias is too large for 32 bits"


def fit(x: QuantParams, weights: Array, zero: Array, bias: Array | None) -> bool:
    """Whether `Σ (x − x.zero) · (weights[o] − zero[o]) + bias[o]` fits 32 bits for all codes `x`."""
    limits = np.iinfo(x.zero.dtype)
    farthest = max(int(limits.max) - int(x.zero), int(x.zero) - int(limits.min))
    distances = np.abs(weights.astype(np.int16) - zero.reshape(-1, *[1] * (weights.ndim - 1)))
    most = farthest * distances.sum(axis=tuple(range(1, weights.ndim)), dtype=np.int64)
    return bool((most + (0 if bias is None else np.abs(bias.astype(np.int64))) < 2**31).all())
