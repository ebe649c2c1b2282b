"""Codes of 2, 4 or 8 bits that share bytes. The low bits of a byte come first, or its high bits (`high_first`)."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.contrib.expansion.body import Body
from compiler.contrib.expansion.node import Node
from compiler.ir.graph import constant_of

__all__ = ["UINT8", "bits_of", "matrix", "rows_of", "unpacked", "zeros_like"]

UINT8 = ir.DataType.UINT8
_TYPES = {2: ir.DataType.UINT2, 4: ir.DataType.UINT4, 8: UINT8}


def bits_of(node: Node) -> int:
    """The attribute `bits`, the size of a code."""
    bits = node.int("bits", 4)
    if bits not in _TYPES:
        node.refuse("CC0202", f"{node.op_type}'s attribute bits is {bits}; only 2, 4 and 8 are supported")
    return bits


def matrix(
    node: Node, new: Body, value: ir.Value, bits: int, shape: tuple[int, int], *, high_first: bool = False
) -> ir.Value:
    """The first codes of each row of bytes. The codes of a constant have a type of as many bits.

    `value` holds the rows one after another. The result has the given shape `[rows, codes]`.
    """
    rows, count = shape
    array = constant_of(value)
    if array is None:
        return rows_of(new, new.reshape(value, rows, -1), 2, bits, count, high_first=high_first)
    if array.size % rows or array.size // rows * 8 // bits < count:
        node.refuse("CC0210", f"{node.op_type} needs {rows} rows of {count} codes, found {array.size} bytes")

    def compute() -> np.ndarray:
        return unpacked(array, bits, shape, high_first=high_first).astype(_TYPES[bits].numpy())

    return new.lazy_constant(compute, _TYPES[bits], shape)


def unpacked(array: np.ndarray, bits: int, shape: tuple[int, int], *, high_first: bool = False) -> np.ndarray:
    """The first codes of each row of an array of bytes, `uint8 [rows, codes]`."""
    rows, count = shape
    codes = array.reshape(rows, -1, 1) >> np.array(_shifts(bits, high_first), np.uint8) & np.uint8((1 << bits) - 1)
    return np.asarray(codes.reshape(rows, -1)[:, :count])


def _shifts(bits: int, high_first: bool) -> list[int]:
    """The lowest bit of each code of a byte."""
    return [*range(0, 8, bits)][:: -1 if high_first else 1]


def rows_of(new: Body, value: ir.Value, rank: int, bits: int, count: int, *, high_first: bool = False) -> ir.Value:
    """The first `count` codes of each row of the bytes `uint8 [..., n]`, each code as a byte."""
    codes = []
    for shift in _shifts(bits, high_first):
        moved = new.op("BitShift", value, new.scalar(shift, UINT8), direction="RIGHT") if shift else value
        codes.append(new.op("BitwiseAnd", moved, new.scalar((1 << bits) - 1, UINT8)) if bits < 8 else moved)
    if bits < 8:
        stacked = new.op("Concat", *(new.unsqueeze(code, rank) for code in codes), axis=rank)
        value = new.reshape(stacked, *[0] * (rank - 1), -1)
    return new.slice(value, rank - 1, 0, count)


def zeros_like(new: Body, scales: ir.Value, bits: int, dtype: ir.DataType) -> ir.Value:
    """The zero points that hold if a node gives none: half of the number of codes, in the shape of the scales."""
    return new.op("Expand", new.scalar(1 << (bits - 1), dtype), new.op("Shape", scales))
