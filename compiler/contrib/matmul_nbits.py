"""Products with weights of few bits: MatMulNBits and MatMulBnb4."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body
from compiler.contrib.expansion.node import Node, expands
from compiler.contrib.expansion.packed import UINT8, bits_of, matrix, unpacked, zeros_like
from compiler.ir.graph import PLAN_DOMAIN, constant_of
from compiler.rewrite.permutation import typed

__all__: list[str] = []

_FP4 = (0.0, 0.0052083333, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
"""The numbers of the codes 0 to 7 of FP4; the codes 8 to 15 are their negatives."""
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""The numbers of the codes of NF4. Source: https://arxiv.org/abs/2305.14314, appendix E."""
_TABLES = ((*_FP4, *(-number for number in _FP4)), _NF4)
"""`quant_type` → the number of each code."""

_INT8 = 4
"""The `accuracy_level` at which A may be rounded to 8 bits."""


@dataclass(frozen=True)
class _Blocks:
    """The sizes of quantized weights: W is `[rows, width]`, and a row has `count` blocks of `size` elements."""

    bits: int
    rows: int
    width: int
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the scales."""
        return self.rows, -(-self.width // self.size)


@expands("MatMulNBits")
def matmul_nbits(node: Node, new: Body) -> ir.Value:
    """`A · Wᵀ + bias`. The rows of W `[N, K]` consist of blocks, and each block has a scale and a zero point.

    B `uint8 [N, blocks, bytes]` holds the codes of W. With `g_idx`, element k of a row belongs to the block `g_idx[k]`.
    `accuracy_level` says how precise A must be, at least. At the level 4, a kernel may round A to 8 bits, where
    onnxruntime rounds too.
    """
    dtype = node.dtype(0, "A", FLOAT, *HALVES)
    blocks = _Blocks(bits_of(node), node.positive("N"), node.positive("K"), node.positive("block_size"))
    rounds_a = node.choice("accuracy_level", 0, 1, 2, 3, _INT8) == _INT8 and _rounds(node, blocks)
    node.choice("weight_prepacked", 0)
    node.dtype(1, "B", UINT8)
    a, bias = new.upcast(node.input(0)), node.optional(5)
    product = _with_codes(node, new, a, blocks, rounds_a)
    if product is None:
        product = new.op("MatMul", a, new.transpose(_weights(node, new, blocks), 1, 0))
    return new.cast(new.total(product, bias and new.upcast(bias)), dtype, FLOAT)


def _rounds(node: Node, blocks: _Blocks) -> bool:
    """Whether onnxruntime rounds A at the level 4: zero points are codes, and codes of 2 bits have usual blocks."""
    zeros = node.optional(3)
    return (zeros is None or zeros.dtype == UINT8) and (blocks.bits > 2 or blocks.size in (32, 64, 128))


def _with_codes(node: Node, new: Body, a: ir.Value, blocks: _Blocks, rounds_a: bool) -> ir.Value | None:
    """The product as an operator of the plan, if the weights are constant, and other operators cannot express it.

    DequantizeLinear takes only codes as zero points, and a MatMul may not round A.
    """
    codes, scales, zeros = (node.constant(index) for index in (1, 2, 3))
    is_expressible = not rounds_a and (zeros is None or zeros.dtype == np.uint8)
    if is_expressible or codes is None or scales is None or (zeros is None and node.optional(3) is not None):
        return None
    rows, count = blocks.shape
    size = rows * count * blocks.size * blocks.bits // 8
    if node.optional(4) is not None or blocks.size % 16 or [codes.size, scales.size] != [size, rows * count]:
        return None
    if zeros is not None and zeros.dtype == np.uint8 and zeros.size == rows * -(-count * blocks.bits // 8):
        zeros = unpacked(zeros, blocks.bits, blocks.shape)
    if zeros is not None and zeros.size != rows * count:
        return None
    shapes = ((codes, (rows, count, -1)), (scales, blocks.shape), (zeros, blocks.shape))
    weights = [None if array is None else new.constant(array.reshape(shape)) for array, shape in shapes]
    product = new.op(
        "MatMulNBits",
        a,
        *weights,
        domain=PLAN_DOMAIN,
        version=1,
        N=rows,
        K=blocks.width,
        bits=blocks.bits,
        block_size=blocks.size,
        rounds_a=1 if rounds_a else None,
    )
    shape = node.input(0).shape
    return typed(product, ir.TensorType(FLOAT), None if shape is None else ir.Shape([*shape.dims[:-1], rows]))


def _weights(node: Node, new: Body, blocks: _Blocks) -> ir.Value:
    """W in float32, in which onnxruntime computes products of float16 too."""
    codes = matrix(node, new, node.input(1), blocks.bits, (blocks.rows, blocks.width))
    zeros, groups = node.optional(3), node.optional(4)
    scales = _scales(node, new, blocks)
    is_packed = zeros is not None and zeros.dtype == UINT8
    if groups is not None and (blocks.bits != 4 or is_packed):
        # onnxruntime 1.32 ignores such zero points, and gives other results for 2 bits
        node.refuse("CC0205", "MatMulNBits's input g_idx is supported for 4 bits, and without packed zero points")
    if groups is None and (zeros is None or is_packed):
        offsets = _offsets(node, new, blocks, scales, codes.dtype or UINT8)
        return new.op("DequantizeLinear", codes, scales, offsets, axis=1, block_size=blocks.size)
    index = _groups(node, new, blocks)
    numbers = _offsets(node, new, blocks, scales, UINT8) if zeros is None else new.reshape(zeros, *blocks.shape)
    offsets, factors = (new.op("Gather", each, index, axis=1) for each in (new.op("Cast", numbers, to=FLOAT), scales))
    return new.op("Mul", new.op("Sub", new.op("Cast", codes, to=FLOAT), offsets), factors)


def _scales(node: Node, new: Body, blocks: _Blocks) -> ir.Value:
    """The scales `[N, blocks]` in float32; a constant if they are constant."""
    array = node.constant(2)
    if array is None:
        return new.reshape(new.upcast(node.input(2)), *blocks.shape)
    if array.size != blocks.shape[0] * blocks.shape[1]:
        node.refuse("CC0210", f"MatMulNBits needs {blocks.shape} scales, found {array.size}")
    dtype = FLOAT if node.input(2).dtype in HALVES else node.dtype(2, "scales")
    return new.lazy_constant(lambda: array.reshape(blocks.shape).astype(dtype.numpy()), dtype, blocks.shape)


def _offsets(node: Node, new: Body, blocks: _Blocks, scales: ir.Value, kind: ir.DataType) -> ir.Value:
    """The zero points `[N, blocks]` in the type of the codes."""
    given = node.optional(3)
    if given is None and constant_of(scales) is None:
        return zeros_like(new, scales, blocks.bits, kind)
    if given is None:
        half = 1 << (blocks.bits - 1)
        return new.lazy_constant(lambda: np.full(blocks.shape, half, kind.numpy()), kind, blocks.shape)
    found = matrix(node, new, given, blocks.bits, blocks.shape)
    return new.cast(found, kind, found.dtype or UINT8)


def _groups(node: Node, new: Body, blocks: _Blocks) -> ir.Value:
    """The block of each element of a row, `[K]`."""
    given = node.optional(4)
    if given is None:
        return new.op("Div", new.positions(blocks.width), new.numbers(blocks.size))
    return new.slice(given, 0, 0, blocks.width)


@expands("MatMulBnb4")
def matmul_bnb4(node: Node, new: Body) -> ir.Value:
    """`A · Wᵀ` for codes of FP4 or NF4 of W `[N, K]`, whose elements, in order, form blocks with a factor each.

    The high bits of a byte of B come first.
    """
    dtype = node.dtype(0, "A", FLOAT, *HALVES)
    rows, width, block = node.positive("N"), node.positive("K"), node.positive("block_size")
    node.choice("transB", 1)
    node.int("training_mode", 0)  # without training, it changes nothing
    table = new.cast(new.constant(np.array(_TABLES[node.choice("quant_type", 0, 1)], np.float32)), dtype, FLOAT)
    numbers = new.op("Gather", table, _indices(node, new, rows * width))
    blocks = -(-rows * width // block)
    rest = blocks * block - rows * width
    if rest:
        numbers = new.op("Pad", numbers, new.numbers(0, rest))
    weights = new.op("Mul", new.reshape(numbers, blocks, block), new.reshape(node.input(2), blocks, 1))
    flat = new.slice(new.reshape(weights, -1), 0, 0, rows * width) if rest else weights
    return new.op("MatMul", node.input(0), new.transpose(new.reshape(flat, rows, width), 1, 0))


def _indices(node: Node, new: Body, count: int) -> ir.Value:
    """The first codes of B as indices `int32 [count]`."""
    node.dtype(1, "B", UINT8)
    codes = matrix(node, new, node.input(1), 4, (1, count), high_first=True)
    return new.reshape(new.op("Cast", codes, to=ir.DataType.INT32), -1)
