"""The definition of the plan's QuantizedMatMul, in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def quantized_rows(x: Array) -> tuple[Array, Array, Array]:
    """The codes, the zero point and the scale of each row, whose numbers are finite."""
    low = np.minimum(x.min(-1, keepdims=True), np.float32(0))
    high = np.maximum(x.max(-1, keepdims=True), np.float32(0))
    scale = high / np.float32(255) - low / np.float32(255)
    zero = np.minimum(np.rint(-low / scale), np.float32(255))
    codes = np.clip(np.rint(x * (np.float32(1) / scale)) + zero, 0, 255)
    return codes.astype(np.int64), zero.astype(np.int64), scale


def quantized_product(x: Array, w: Array, scales: Array) -> Array:
    """`x · wᵀ` with `w [N, K]` of codes; every operation on floats is in float32."""
    codes, zero, scale = quantized_rows(x)
    sums = ((codes - zero) @ w.T.astype(np.int64)).astype(np.float32)
    return np.asarray(sums * scales * scale)


def quantized_weights(columns: Array) -> tuple[Array, Array]:
    """The codes and the scales of weights `[N, K]`."""
    scales = (np.abs(columns.astype(np.float64)).max(1) / 127).astype(np.float32)
    codes = np.rint(columns.astype(np.float64) / scales[:, None].astype(np.float64))
    return codes.astype(np.int8), scales
