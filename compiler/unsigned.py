"""A model whose int8 codes are uint8 wherever a product of uint8 and int8 would be computed.

Without VNNI, onnxruntime's kernels for x86-64 multiply uint8 by int8 with `vpmaddubsw`, which adds two products in 16
bits and saturates them. Its products of uint8 and uint8 are exact on every processor. A code and its zero point that
both grow by 128 mean the same number, so `uint8 × int8` can be written as `uint8 × uint8` without a change of meaning.

onnxruntime's own option for this, `session.x64quantprecision`, moves constant weights alone, of some versions of the
operators, and in a plain run none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx_ir as ir

from compiler.graph import constant_of, nodes_of, static_shape
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.inline_functions import inline_in_one_opset
from compiler.passes.rule import Rewriter, insert

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["make_unsigned", "multiplies_codes", "products_of"]

_OFFSET = 128
_MICROSOFT = "com.microsoft"


class _Operands(NamedTuple):
    """The inputs of an integer product, as onnxruntime's kernel multiplies them: left × right.

    `left` is `None` where the operator quantizes that operand to uint8 itself.
    """

    left: int | None
    left_zero: int | None
    right: int
    right_zero: int


_PRODUCTS: dict[tuple[str, str], tuple[_Operands, ...]] = {
    ("", "MatMulInteger"): (_Operands(0, 2, 1, 3),),
    ("", "ConvInteger"): (_Operands(1, 3, 0, 2),),
    ("", "QLinearMatMul"): (_Operands(0, 2, 3, 5),),
    ("", "QLinearConv"): (_Operands(0, 2, 3, 5),),
    (_MICROSOFT, "QLinearConv"): (_Operands(0, 2, 3, 5),),
    (_MICROSOFT, "QGemm"): (_Operands(0, 2, 3, 5),),
    (_MICROSOFT, "MatMulIntegerToFloat"): (_Operands(0, 4, 1, 5),),
    (_MICROSOFT, "DynamicQuantizeMatMul"): (_Operands(None, None, 1, 3),),
    (_MICROSOFT, "QAttention"): (_Operands(0, 6, 1, 7),),
    (_MICROSOFT, "DynamicQuantizeLSTM"): (_Operands(None, None, 1, 9), _Operands(None, None, 2, 11)),
}


def make_unsigned(model: ir.Model) -> int:
    """Write the products of uint8 and int8 as products of uint8 and uint8, in place. Functions are inlined.

    All int8 codes of QuantizeLinear and DequantizeLinear become uint8 too: onnxruntime fuses these with the operators
    between them into such products, and makes int8 activations uint8 by itself.

    Returns:
        The number of nodes that were rewritten.

    Raises:
        CompileError: a function cannot be inlined.
    """
    if model.functions:
        inline_in_one_opset(model)
    if not multiplies_codes(model) and not any(_quantizes(node) for node in nodes_of(model)):
        return 0
    infer_shapes.run(model)
    rewritten = sum(_rewrite(node) for node in list(nodes_of(model)))
    for node in nodes_of(model):
        for value in node.outputs:  # the file says no more of shapes than onnxruntime infers
            value.shape = None
    return rewritten


def multiplies_codes(model: ir.Model) -> bool:
    """Whether the model has integer products, or functions, which may."""
    return bool(model.functions) or any(True for _ in products_of(model))


def products_of(model: ir.Model) -> Iterator[tuple[ir.Node, ir.DataType | None, ir.DataType | None]]:
    """The integer products of a model whose types are known, and the types of their operands, left and right."""
    for node in nodes_of(model):
        for operands in _PRODUCTS.get((node.domain, node.op_type), ()):
            yield node, _left_type(node, operands), _type_of(node, operands.right)


def _left_type(node: ir.Node, operands: _Operands) -> ir.DataType | None:
    if operands.left is None or operands.left_zero is None:
        return ir.DataType.UINT8
    return _type_of(node, operands.left) or _type_of(node, operands.left_zero)


def _type_of(node: ir.Node, index: int) -> ir.DataType | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    return None if value is None else value.dtype


def _quantizes(node: ir.Node) -> bool:
    return node.op_type in ("QuantizeLinear", "DequantizeLinear")


def _rewrite(node: ir.Node) -> bool:
    if node.op_type == "QuantizeLinear":
        return _is_only_dequantized(node) and _quantize_unsigned(node)
    if node.op_type == "DequantizeLinear" and _type_of(node, 0) == ir.DataType.INT8:
        if _is_for_float_gemm(node):
            return False
        _shift(node, 0)
        _shift_zero(node, 2, scale=1)
        return True
    operands = [
        each
        for each in _PRODUCTS.get((node.domain, node.op_type), ())
        if _left_type(node, each) != ir.DataType.INT8 and _type_of(node, each.right) == ir.DataType.INT8
    ]
    for each in operands:
        _shift(node, each.right)
        _shift_zero(node, each.right_zero)
    return bool(operands)


def _is_for_float_gemm(node: ir.Node) -> bool:
    """Whether Gemm alone reads numbers that have no zero point: onnxruntime computes it in float.

    With a zero point it would fuse that Gemm, and take the scale of C for that of the product.
    """
    has_zero = len(node.inputs) > 2 and node.inputs[2] is not None
    return not has_zero and {use.node.op_type for use in node.outputs[0].uses()} == {"Gemm"}


def _is_only_dequantized(node: ir.Node) -> bool:
    """Whether a QuantizeLinear gives int8 codes that DequantizeLinear alone reads."""
    codes = node.outputs[0]
    readers = {use.node.op_type for use in codes.uses()}
    return codes.dtype == ir.DataType.INT8 and readers == {"DequantizeLinear"} and not codes.is_graph_output()


def _quantize_unsigned(node: ir.Node) -> bool:
    """Give a QuantizeLinear uint8 codes from the start, which nothing has to shift."""
    codes = node.outputs[0]
    _shift_zero(node, 2, scale=1)
    node.attributes.pop("output_dtype", None)
    codes.type = ir.TensorType(ir.DataType.UINT8)
    for reader in [use.node for use in codes.uses()]:
        _shift_zero(reader, 2, scale=1)
    return True


def _shift(node: ir.Node, index: int) -> None:
    """Move an input from int8 to uint8, 128 up."""
    graph, codes = _graph_of(node), node.inputs[index]
    new = Rewriter(graph)
    node.replace_input_with(index, None if codes is None else _shifted(codes, new))
    insert(graph, node, new)


def _shift_zero(node: ir.Node, index: int, scale: int | None = None) -> None:
    """The same of a zero point; one that is left out is 0, of the shape of the `scale`, or a scalar."""
    node.resize_inputs(max(len(node.inputs), index + 1))
    if node.inputs[index] is not None:
        _shift(node, index)
        return
    graph = _graph_of(node)
    new = Rewriter(graph)
    node.replace_input_with(index, _offsets(None if scale is None else node.inputs[scale], new))
    insert(graph, node, new)


def _graph_of(node: ir.Node) -> ir.Graph:
    if not isinstance(node.graph, ir.Graph):
        raise TypeError(f"{node.op_type} is in no graph")
    return node.graph


def _shifted(codes: ir.Value, new: Rewriter) -> ir.Value:
    array = constant_of(codes)
    if array is not None:
        return new.constant(array.view(np.uint8) ^ np.uint8(_OFFSET), f"{codes.name}_uint8")
    wide = new.op("Cast", codes, to=int(ir.DataType.INT32))
    moved = new.op("Add", wide, new.constant(np.array(_OFFSET, np.int32), "offset"))
    return _typed(new.op("Cast", moved, to=int(ir.DataType.UINT8)))


def _offsets(like: ir.Value | None, new: Rewriter) -> ir.Value:
    """Zero points of 128, of the shape of another value."""
    shape = () if like is None else static_shape(like)
    if shape is not None:
        return new.constant(np.full(shape, _OFFSET, np.uint8), "zero_uint8")
    value = ir.tensor(np.array([_OFFSET], np.uint8))
    return _typed(new.op("ConstantOfShape", new.op("Shape", like), value=value))


def _typed(value: ir.Value) -> ir.Value:
    value.type = ir.TensorType(ir.DataType.UINT8)
    return value
