"""Converts the rows of a matrix of floats to codes of 4 or 8 bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.rewrite.low_bit import PackedWeights, packed_codes
from compiler.rewrite.weight_format import WeightFormat

__all__ = ["WORST", "QuantizedRows"]

Array = np.ndarray[Any, Any]

WORST = 0.25
"""The largest `‖W − Ŵ‖ / ‖W‖`. Weights with a larger error stay as they are."""
_PART = 1 << 20
"""The weights that are quantized at a time: they take several times their memory meanwhile."""


@dataclass(frozen=True)
class QuantizedRows:
    """Rows of numbers as `(code − 2^(bits − 1)) · scale`, with a scale for each block of a row."""

    codes: Array
    """`uint8 [rows, blocks, block]`, from 0; those beyond the end of a row stand for 0."""
    scales: Array
    """`[rows, blocks]`, in the type of the numbers."""
    bits: int
    error: float
    """`‖W − Ŵ‖ / ‖W‖`, where Ŵ is the quantized matrix."""

    @staticmethod
    def of(rows: Array, format: WeightFormat) -> QuantizedRows:
        """The codes of finite numbers `[rows, depth]`.

        A block's number of the largest magnitude is exact up to the rounding of the scale. With 8 bits, it becomes the
        code ±127; with 4 bits, the code −8, so that the other codes are used up to 7.
        """
        count, depth = rows.shape
        block = format.block_of(depth)
        codes = np.empty((count, -(-depth // block), block), np.uint8)
        scales = np.empty(codes.shape[:2], rows.dtype)
        lost, whole, step = 0.0, 0.0, max(1, _PART // depth)
        for first in range(0, count, step):
            part = slice(first, first + step)
            padded = np.zeros((len(rows[part]), codes.shape[1] * block))
            padded[:, :depth] = rows[part]
            blocks = padded.reshape(len(padded), -1, block)
            codes[part], scales[part], difference = _quantized(blocks, format.bits, rows.dtype)
            lost, whole = lost + float((difference**2).sum()), whole + float((blocks**2).sum())
        return QuantizedRows(codes, scales, format.bits, (lost / whole) ** 0.5 if whole else 0.0)

    def packed(self, depth: int) -> PackedWeights:
        """The rows, of `depth` numbers each, as the weights of a product."""
        return PackedWeights(packed_codes(self.codes, self.bits), self.scales, None, self.bits, depth)

    @property
    def signed(self) -> Array:
        """The codes of 8 bits as `int8 [rows, blocks · block]`, from −128."""
        return np.asarray((self.codes.reshape(len(self.codes), -1) ^ np.uint8(128)).view(np.int8))


def _quantized(blocks: Array, bits: int, dtype: np.dtype[Any]) -> tuple[Array, Array, Array]:
    """The codes and scales of blocks `float64 [rows, blocks, block]`, and the differences of the codes' numbers."""
    half = 1 << (bits - 1)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1, keepdims=True), -1)[..., 0]
    scales = (np.abs(largest) / (half - 1) if bits == 8 else largest / -half).astype(dtype)
    wide = scales.astype(np.float64)[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(wide == 0, 0, np.rint(blocks / wide)).clip(-half, half - 1)
    return (steps + half).astype(np.uint8), scales, steps * wide - blocks
