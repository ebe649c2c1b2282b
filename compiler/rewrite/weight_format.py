"""Formats of quantized weights, and the conversion of a matrix of floats to codes of 4 or 8 bits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.rewrite.low_bit import MULTIPLE, PackedWeights, packed_codes

__all__ = ["QuantizedRows", "WeightFormat"]

Array = np.ndarray[Any, Any]

_PART = 1 << 20
"""The weights that are quantized at a time: they take several times their memory meanwhile."""
_FORMAT = re.compile(r"int(?P<bits>[48])(:(?P<block>[0-9]{1,9}))?")
_BLOCK = {4: 32, 8: 0}
"""The bits → the default size of a block; 0 for a whole row."""


@dataclass(frozen=True)
class WeightFormat:
    """Codes of `bits` bits, with a scale for each block of `block` codes; 0 for a scale for each row."""

    bits: int
    block: int

    @staticmethod
    def parse(text: str) -> WeightFormat:
        """The format of `int8`, `int4`, `int8:64` or `int4:128`: the bits, and the codes of a block.

        Raises:
            ValueError: the text is something else, or the size of a block is not a multiple of 16.
        """
        found = _FORMAT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not a format of weights: use int8, int4, or int4:64 for blocks of 64")
        bits = int(found["bits"])
        block = _BLOCK[bits] if found["block"] is None else int(found["block"])
        if found["block"] is not None and (block == 0 or block % MULTIPLE):
            raise ValueError(f"{text!r}: the size of a block is a multiple of {MULTIPLE}")
        return WeightFormat(bits, block)

    def block_of(self, depth: int) -> int:
        """The codes of a block in rows of `depth` numbers; the last block of a row may be partial."""
        whole = -(-depth // MULTIPLE) * MULTIPLE
        return min(self.block, whole) if self.block else whole

    def __str__(self) -> str:
        return f"int{self.bits}" + (f":{self.block}" if self.block != _BLOCK[self.bits] else "")


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
