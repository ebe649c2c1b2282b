"""GatherBlockQuantized: rows of a quantized table."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import Body
from compiler.contrib.expansion.node import Node, expands
from compiler.contrib.expansion.packed import UINT8, bits_of, rows_of, zeros_like

__all__: list[str] = []

_FOUR_BITS = (ir.DataType.INT4, ir.DataType.UINT4)


@expands("GatherBlockQuantized")
def gather_block_quantized(node: Node, new: Body) -> ir.Value:
    """The slices of `data` along `gather_axis` that `indices` names, after `(code - zero) · scale`.

    Blocks along `quantize_axis` share a scale and a zero point. The data are int4 or uint4, or bytes `uint8 [..., n]`
    that hold several codes. The zero point of bytes is half of the number of codes if it is absent.
    """
    kind = node.dtype(0, "data", UINT8, *_FOUR_BITS)
    node.dtype(2, "scales", ir.DataType.FLOAT, ir.DataType.FLOAT16)
    rank = node.rank(0, "data")
    axis, quantized = _axis(node, "gather_axis", 0, rank), _axis(node, "quantize_axis", 1, rank)
    bits, block = bits_of(node), node.int("block_size", 128)
    if block < 16 or block & (block - 1):
        node.refuse("CC0202", f"GatherBlockQuantized's attribute block_size {block} is no power of 2 from 16")
    if kind == UINT8 and (axis != 0 or quantized != rank - 1 or rank == 1):
        node.refuse("CC0202", "GatherBlockQuantized needs gather_axis 0 and quantize_axis -1 for data of uint8")
    if kind != UINT8 and bits != 4:
        node.refuse("CC0202", f"GatherBlockQuantized's attribute bits is {bits}, but the data have 4 bits")
    data, scales, zeros = node.input(0), node.input(2), node.optional(3)
    indices = node.input(1)
    if axis == quantized:
        numbers = new.op("DequantizeLinear", data, scales, zeros, axis=quantized, block_size=block)
        return new.op("Gather", numbers, indices, axis=axis)
    moved = node.rank(1, "indices") - 1
    codes, factors = (new.op("Gather", value, indices, axis=axis) for value in (data, scales))
    offsets = zeros and new.op("Gather", zeros, indices, axis=axis)
    if kind == UINT8:
        width, blocks = node.size(0, "data", -1) * 8 // bits, node.size(2, "scales", -1)
        codes = rows_of(new, codes, rank + moved, bits, width)
        offsets = offsets and rows_of(new, offsets, rank + moved, bits, blocks)
        if offsets is None:
            offsets = zeros_like(new, factors, bits, UINT8)
    position = quantized if quantized < axis else quantized + moved
    return new.op("DequantizeLinear", codes, factors, offsets, axis=position, block_size=block)


def _axis(node: Node, name: str, default: int, rank: int) -> int:
    """An axis, counted from the front."""
    axis = node.int(name, default)
    if not -rank <= axis < rank:
        node.refuse("CC0202", f"GatherBlockQuantized's attribute {name} is {axis}, but the data have {rank} axes")
    return axis % rank
