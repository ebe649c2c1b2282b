"""Quantization, and products of integers: QuantizeLinear, DynamicQuantizeMatMul and their relatives."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body
from compiler.contrib.expansion.node import Node, expands
from compiler.ir.graph import rank

__all__: list[str] = []

_BYTES = (ir.DataType.UINT8, ir.DataType.INT8)


@expands("QuantizeLinear")
def quantize_linear(node: Node, new: Body) -> ir.Value:
    """`QuantizeLinear` of the standard, per tensor or per axis."""
    return _like_standard(node, new)


@expands("DequantizeLinear")
def dequantize_linear(node: Node, new: Body) -> ir.Value:
    """`DequantizeLinear` of the standard, per tensor or per axis."""
    return _like_standard(node, new)


def _like_standard(node: Node, new: Body) -> ir.Value:
    inputs = (node.input(0), node.input(1), node.optional(2))
    return new.op(node.op_type, *inputs, axis=node.int("axis", 1))


@expands("DynamicQuantizeMatMul")
def dynamic_quantize_matmul(node: Node, new: Body) -> ir.Value:
    """`(A' - zero of A') · (B - zero of B) · scales + bias`, where A' are codes of A `[..., K]`; B is `[K, N]`."""
    codes, scale, zero = new.op("DynamicQuantizeLinear", node.input(0), outputs=3)
    product = new.op("MatMulInteger", codes, _bytes(node, 1, "B"), zero, node.optional(3))
    return _scaled(new, product, new.op("Mul", scale, _list(node, 2, "b_scale")), node.optional(4))


@expands("MatMulIntegerToFloat")
def matmul_integer_to_float(node: Node, new: Body) -> ir.Value:
    """`(A - zero of A) · (B - zero of B) · scales + bias` for codes A `[..., K]` and B `[K, N]`."""
    a, b = _bytes(node, 0, "A"), _bytes(node, 1, "B")
    dtype, bias = node.dtype(2, "a_scale", FLOAT, ir.DataType.FLOAT16), node.optional(6)
    product = new.op("MatMulInteger", a, b, node.optional(4), node.optional(5))
    scale = new.op("Mul", _single(new, new.upcast(node.input(2))), new.upcast(_list(node, 3, "b_scale")))
    return new.cast(_scaled(new, product, scale, bias and new.upcast(bias)), dtype, FLOAT)


@expands("QGemm")
def qgemm(node: Node, new: Body) -> ir.Value:
    """`alpha · ((A - zero of A) · (B - zero of B) + C) · scales / y_scale`, as codes if `y_zero_point` is given."""
    a, b = (_matrix(node, new, index, name) for index, name in ((0, "A"), (3, "B")))
    product = new.op("MatMulInteger", a, b, node.input(2), node.input(5))
    total = new.op("Cast", new.total(product, node.optional(6)), to=FLOAT)
    scale = new.op("Mul", _single(new, node.input(1)), node.input(4))
    if (alpha := node.float("alpha", 1.0)) != 1:
        scale = new.op("Mul", new.scalar(alpha, FLOAT), scale)
    step, zero = node.optional(7), node.optional(8)
    if step is None:
        if zero is not None:
            node.refuse("CC0205", "QGemm has the input y_zero_point, but no y_scale")
        return new.op("Mul", total, scale)
    scaled = new.op("Mul", total, new.op("Div", scale, step))
    return scaled if zero is None else new.op("QuantizeLinear", scaled, new.scalar(1, FLOAT), zero)


def _bytes(node: Node, index: int, name: str) -> ir.Value:
    node.dtype(index, name, *_BYTES)
    return node.input(index)


def _list(node: Node, index: int, name: str) -> ir.Value:
    """One number, or one for each column of B."""
    value = node.input(index)
    if (found := rank(value)) is not None and found > 1:
        node.refuse("CC0210", f"{node.op_type}'s input {name} has {found} dimensions, not 0 or 1")
    return value


def _matrix(node: Node, new: Body, index: int, name: str) -> ir.Value:
    value = _bytes(node, index, name)
    return new.transpose(value, 1, 0) if node.flag(f"trans{name}", False) else value


def _single(new: Body, value: ir.Value) -> ir.Value:
    """The only element of a value."""
    return new.op("Reshape", value, new.numbers())


def _scaled(new: Body, product: ir.Value, scale: ir.Value, bias: ir.Value | None) -> ir.Value:
    return new.total(new.op("Mul", new.op("Cast", product, to=FLOAT), scale), bias)
