"""Formats of quantized weights, and the conversion of a matrix of floats to codes of 4 or 8 bits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["MULTIPLE", "QuantizedRows", "WeightFormat"]

Array = np.ndarray[Any, Any]

MULTIPLE = 16
"""The size of a block is a multiple of this number of codes, or a block is a whole row."""
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
        padded = np.zeros((count, -(-depth // block) * block))
        padded[:, :depth] = rows
        blocks = padded.reshape(count, -1, block)
        half = 1 << (format.bits - 1)
        largest = np.take_along_axis(blocks, np.abs(blocks).argmax(-1, keepdims=True), -1)[..., 0]
        scales = (np.abs(largest) / (half - 1) if format.bits == 8 else largest / -half).astype(rows.dtype)
        wide = scales.astype(np.float64)[..., None]
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(wide == 0, 0, np.rint(blocks / wide)).clip(-half, half - 1)
        norm = float(np.linalg.norm(blocks))
        error = float(np.linalg.norm(steps * wide - blocks)) / norm if norm else 0.0
        return QuantizedRows((steps + half).astype(np.uint8), scales, format.bits, error)

    @property
    def packed(self) -> Array:
        """The codes as bytes, `uint8 [rows, blocks, block · bits / 8]`. The low bits come first."""
        if self.bits == 8:
            return self.codes
        return np.asarray(self.codes[..., ::2] | self.codes[..., 1::2] << np.uint8(4))

    @property
    def signed(self) -> Array:
        """The codes of 8 bits as `int8 [rows, blocks · block]`, from −128."""
        return np.asarray((self.codes.reshape(len(self.codes), -1) ^ np.uint8(128)).view(np.int8))
