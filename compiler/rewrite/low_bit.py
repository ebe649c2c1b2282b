"""Matrices of codes of 2, 4 or 8 bits that DequantizeLinear converts to floats, as the plan's MatMulNBits has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, constant_of, static_shape
from compiler.ir.views.quantize import QuantizeView
from compiler.rewrite.permutation import typed
from compiler.rewrite.rule import Rewriter
from compiler.rewrite.weight_format import MULTIPLE

__all__ = ["LowBitMatrix", "PackedWeights", "low_bit_product", "packed_codes"]

Array = np.ndarray[Any, Any]

_KINDS = {
    ir.DataType.INT2: (2, 2),
    ir.DataType.UINT2: (2, 0),
    ir.DataType.INT4: (4, 8),
    ir.DataType.UINT4: (4, 0),
    ir.DataType.INT8: (8, 128),
    ir.DataType.UINT8: (8, 0),
}
"""The types of codes → the number of bits, and the number that makes the smallest code 0."""
_SCALES = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


@dataclass(frozen=True)
class LowBitMatrix:
    """A matrix `W [N, K]`: `(code − zero) · scale`, with a scale and a zero point for each block of a row."""

    codes: Array
    """`[N, K]`, in the type of DequantizeLinear's input."""
    scales: Array
    """`[N, blocks]`."""
    zeros: Array | None
    """`[N, blocks]`, in the type of the codes; `None` if all are 0."""
    bits: int
    shift: int
    """The number that makes the smallest code 0."""
    block: int
    """The codes of a block; the last one of a row may be partial."""

    @staticmethod
    def of(node: ir.Node, transposed: bool) -> LowBitMatrix | str:
        """The matrix of a DequantizeLinear, whose result is `W`, or `Wᵀ` if `transposed`; or a reason against it."""
        view = QuantizeView[ir.Value].of(node, complete=True)
        kind = None if view is None or view.x is None or view.x.dtype is None else _KINDS.get(view.x.dtype)
        if view is None or kind is None:
            return "the weights are no codes of 2, 4 or 8 bits"
        shape = static_shape(view.x)
        if shape is None or len(shape) != 2 or 0 in shape or view.block < 0:
            return "the weights are no matrix"
        if not view.block and kind[0] == 8:
            return "the weights have 8 bits and no blocks"
        if view.scale is None or view.scale.dtype not in _SCALES:
            return "the scales are no floats of 16 or 32 bits"
        codes, scales, zeros = constant_of(view.x), constant_of(view.scale), constant_of(view.zero)
        if codes is None or scales is None or (zeros is None and view.zero is not None):
            return "the weights, a scale or a zero point is not constant"
        spread = _Spread(shape[::-1] if transposed else shape, view.axis, view.block, transposed)
        arrays = [None if array is None else spread.of(array) for array in (scales, zeros)]
        if arrays[0] is None or (zeros is not None and arrays[1] is None):
            return "the scales are not along the depth, or their blocks have no multiple of 16 codes"
        codes = codes.T if transposed else codes
        return LowBitMatrix(codes, arrays[0], arrays[1], *kind, spread.size)

    @property
    def packed(self) -> Array:
        """The codes, counted from 0, as bytes `uint8 [N, blocks, block · bits / 8]`. The low bits come first."""
        rows, depth = self.codes.shape
        blocks = self.scales.shape[1]
        padded = np.zeros((rows, blocks * self.block), np.uint8)
        padded[:, :depth] = self._counted(self.codes)
        return packed_codes(padded.reshape(rows, blocks, self.block), self.bits)

    @property
    def counted_zeros(self) -> Array | None:
        """The zero points, counted from 0, `uint8 [N, blocks]`; `None` if all are half of the number of codes."""
        half = 1 << (self.bits - 1)
        zeros = np.full(self.scales.shape, self.shift, np.uint8) if self.zeros is None else self._counted(self.zeros)
        return None if (zeros == half).all() else zeros

    def _counted(self, codes: Array) -> Array:
        """Codes as numbers from 0."""
        signed = codes.astype(np.int8 if self.shift else np.uint8)
        return np.asarray(signed.view(np.uint8) + np.uint8(self.shift))  # negative numbers wrap around


@dataclass(frozen=True)
class PackedWeights:
    """The weights of the plan's `MatMulNBits`: rows of `depth` codes of `bits` bits."""

    codes: Array
    """`uint8 [rows, blocks, block · bits / 8]`."""
    scales: Array
    """`[rows, blocks]`."""
    zeros: Array | None
    """`[rows, blocks]`, of uint8 or floats; `None` if all are half of the number of codes."""
    bits: int
    depth: int


def packed_codes(codes: Array, bits: int) -> Array:
    """Codes from 0, `uint8 [rows, blocks, block]`, as bytes `[rows, blocks, block · bits / 8]`, low bits first."""
    per_byte = 8 // bits
    found: Array = np.ascontiguousarray(codes[..., ::per_byte])
    for i in range(1, per_byte):
        found = found | codes[..., i::per_byte] << np.uint8(i * bits)
    return found


def low_bit_product(new: Rewriter, a: ir.Value, weights: PackedWeights, result: ir.Value, name: str) -> ir.Value:
    """The plan's `MatMulNBits` of `a` and packed weights, in place of the product `result`.

    `name` begins the names of the weights.
    """
    arrays = {"codes": weights.codes, "scales": weights.scales, "zeros": weights.zeros}
    constants = [
        None if array is None else new.constant(np.ascontiguousarray(array), f"{name}{kind}")
        for kind, array in arrays.items()
    ]
    rows, _, size = weights.codes.shape
    product = new.op(
        "MatMulNBits",
        a,
        *constants,
        domain=PLAN_DOMAIN,
        version=1,
        N=rows,
        K=weights.depth,
        bits=weights.bits,
        block_size=size * 8 // weights.bits,
    )
    return typed(product, result.type, result.shape)


@dataclass(frozen=True)
class _Spread:
    """The assignment of scales to the codes of `W [N, K]`."""

    shape: tuple[int, ...]
    axis: int
    """The axis of the scales of the stored matrix."""
    given: int
    """The codes of a block; 0 for scales without blocks."""
    transposed: bool
    """Whether the stored matrix is `Wᵀ`."""

    @property
    def size(self) -> int:
        """The codes of a block in the plan."""
        depth = self.shape[1]
        return self.given if 0 < self.given < depth else -(-depth // MULTIPLE) * MULTIPLE

    def of(self, numbers: Array) -> Array | None:
        """Scales or zero points as `[N, blocks]`; `None` if they are not along the depth, or not supported."""
        rows, depth = self.shape
        if not self.given and numbers.size == 1:
            return np.full((rows, 1), numbers.reshape(()))
        if not -2 <= self.axis < 2:
            return None
        is_deep = (self.axis % 2 == 1) != self.transposed
        if not self.given:
            return None if is_deep or numbers.shape != (rows,) else numbers.reshape(rows, 1)
        found = numbers.T if self.transposed else numbers
        fits = is_deep and self.size % MULTIPLE == 0 and found.shape == (rows, -(-depth // self.given))
        return np.ascontiguousarray(found) if fits else None
