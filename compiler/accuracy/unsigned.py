"""A rewrite of products of uint8 and int8 as products of uint8 and uint8.

Without VNNI, onnxruntime's kernels for x86-64 multiply uint8 by int8 with `vpmaddubsw`, which adds two products in 16
bits and saturates the sum. Its products of uint8 and uint8 are exact on every processor. Adding 128 to a code and to
its zero point does not change the number that the code represents, so `uint8 × int8` is equivalent to `uint8 × uint8`.

onnxruntime's option for this, `session.x64quantprecision`, converts only constant weights of some operator versions,
and none without optimizations.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, graph_of, graphs_of, nodes_of, static_shape
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.inline_functions import inline_in_one_opset
from compiler.rewrite.rule import Rewriter, insert

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["make_unsigned", "multiplies_codes", "products_of"]

_OFFSET = 128
_MICROSOFT = "com.microsoft"


class _Operands(NamedTuple):
    """The indices of the operands that onnxruntime's kernel multiplies, left × right, and of their zero points.

    `left` is `None` if the operator quantizes the left operand to uint8 itself.
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
    """Rewrite products of uint8 and int8 as products of uint8 and uint8, in place. Functions are inlined.

    All int8 codes of QuantizeLinear and DequantizeLinear also become uint8, because onnxruntime fuses these with the
    operators between them into such products, and itself converts int8 activations to uint8.

    Returns:
        The number of rewritten nodes.

    Raises:
        CompileError: a function cannot be inlined.
    """
    if not multiplies_codes(model) and not any(_quantizes(node) for node in _all_nodes(model)):
        return 0
    if model.functions:
        inline_in_one_opset(model)
    infer_shapes.run(model)
    names = _new_names(model)
    rewritten = sum(_rewrite(node, names) for node in list(nodes_of(model)))
    for node in nodes_of(model):
        for value in node.outputs:  # onnxruntime infers the shapes again
            value.shape = None
    return rewritten


def multiplies_codes(model: ir.Model) -> bool:
    """Whether the model or a function of it has integer products."""
    return any((node.domain, node.op_type) in _PRODUCTS for node in _all_nodes(model))


def _all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """The nodes of the model and of its functions."""
    yield from nodes_of(model)
    for function in model.functions.values():
        yield from ir.traversal.RecursiveGraphIterator(function.graph)


def _new_names(model: ir.Model) -> Iterator[str]:
    """Names that no value of any graph has, because a nested graph sees the values of the enclosing graphs."""
    graphs = list(graphs_of(model.graph))
    taken = {value.name for graph in graphs for value in (*graph.inputs, *graph.initializers.values())}
    taken |= {value.name for node in nodes_of(model) for value in node.outputs}
    return (name for number in itertools.count() if (name := f"unsigned_{number}") not in taken)


def products_of(model: ir.Model) -> Iterator[tuple[ir.Node, ir.DataType | None, ir.DataType | None]]:
    """The integer products of known types in a model, with the types of the left and right operands."""
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


def _rewrite(node: ir.Node, names: Iterator[str]) -> bool:
    if _quantizes(node) and "block_size" in node.attributes:
        return False  # onnxruntime computes blocks in float
    if node.op_type == "QuantizeLinear":
        return _is_only_dequantized(node) and _quantize_unsigned(node, names)
    if node.op_type == "DequantizeLinear" and _type_of(node, 0) == ir.DataType.INT8:
        if _leave_to_gemm(node, names):
            return False
        _shift(node, 0, names)
        _shift_zero(node, 2, names, scale=1)
        return True
    operands = [
        each
        for each in _PRODUCTS.get((node.domain, node.op_type), ())
        if _left_type(node, each) != ir.DataType.INT8 and _type_of(node, each.right) == ir.DataType.INT8
    ]
    for each in operands:
        _shift(node, each.right, names)
        _shift_zero(node, each.right_zero, names)
    return bool(operands)


def _gemms_in_float(node: ir.Node) -> list[tuple[ir.Node, int]]:
    """The Gemm nodes that read a DequantizeLinear without a zero point. onnxruntime computes them in float.

    With a zero point, onnxruntime would fuse them, and confuse the scale of C with the scale of the product.
    """
    has_zero = len(node.inputs) > 2 and node.inputs[2] is not None
    return [] if has_zero else [(use.node, use.idx) for use in node.outputs[0].uses() if use.node.op_type == "Gemm"]


def _leave_to_gemm(node: ir.Node, names: Iterator[str]) -> bool:
    """Give Gemm nodes in float their own DequantizeLinear. Return whether no other node reads the node's result."""
    uses = _gemms_in_float(node)
    if len(uses) == len(node.outputs[0].uses()) and not node.outputs[0].is_graph_output():
        return bool(uses)
    if uses:
        graph = graph_of(node)
        new = Rewriter(graph)
        numbers = _typed(new.like(node, *node.inputs), ir.DataType.FLOAT, names)
        insert(graph, node, new)
        for reader, index in uses:
            reader.replace_input_with(index, numbers)
    return False


def _is_only_dequantized(node: ir.Node) -> bool:
    """Whether only DequantizeLinear nodes read the int8 codes of a QuantizeLinear."""
    codes = node.outputs[0]
    readers = [use.node for use in codes.uses()]
    are_simple = all(reader.op_type == "DequantizeLinear" and not _gemms_in_float(reader) for reader in readers)
    return codes.dtype == ir.DataType.INT8 and bool(readers) and are_simple and not codes.is_graph_output()


def _quantize_unsigned(node: ir.Node, names: Iterator[str]) -> bool:
    """Change a QuantizeLinear to return uint8 codes, so that no conversion is needed."""
    codes = node.outputs[0]
    _shift_zero(node, 2, names, scale=1)
    node.attributes.pop("output_dtype", None)
    codes.type = ir.TensorType(ir.DataType.UINT8)
    for reader in [use.node for use in codes.uses()]:
        _shift_zero(reader, 2, names, scale=1)
    return True


def _shift(node: ir.Node, index: int, names: Iterator[str]) -> None:
    """Convert an input from int8 to uint8 by adding 128."""
    graph, codes = graph_of(node), node.inputs[index]
    new = Rewriter(graph)
    node.replace_input_with(index, None if codes is None else _shifted(codes, new, names))
    insert(graph, node, new)


def _shift_zero(node: ir.Node, index: int, names: Iterator[str], scale: int | None = None) -> None:
    """Convert a zero point in the same way. An absent zero point is 0, with the shape of `scale`, or a scalar."""
    node.resize_inputs(max(len(node.inputs), index + 1))
    if node.inputs[index] is not None:
        _shift(node, index, names)
        return
    graph = graph_of(node)
    new = Rewriter(graph)
    node.replace_input_with(index, _offsets(None if scale is None else node.inputs[scale], new, names))
    insert(graph, node, new)


def _shifted(codes: ir.Value, new: Rewriter, names: Iterator[str]) -> ir.Value:
    array = constant_of(codes)
    if array is not None:
        return new.constant(array.view(np.uint8) ^ np.uint8(_OFFSET), next(names))
    wide = _typed(new.op("Cast", codes, to=int(ir.DataType.INT32)), ir.DataType.INT32, names)
    moved = new.op("Add", wide, new.constant(np.array(_OFFSET, np.int32), next(names)))
    narrow = new.op("Cast", _typed(moved, ir.DataType.INT32, names), to=int(ir.DataType.UINT8))
    return _typed(narrow, ir.DataType.UINT8, names)


def _offsets(like: ir.Value | None, new: Rewriter, names: Iterator[str]) -> ir.Value:
    """Zero points of 128 with the shape of another value."""
    shape = () if like is None else static_shape(like)
    if shape is not None:
        return new.constant(np.full(shape, _OFFSET, np.uint8), next(names))
    sizes = _typed(new.op("Shape", like), ir.DataType.INT64, names)
    filled = new.op("ConstantOfShape", sizes, value=ir.tensor(np.array([_OFFSET], np.uint8)))
    return _typed(filled, ir.DataType.UINT8, names)


def _typed(value: ir.Value, dtype: ir.DataType, names: Iterator[str]) -> ir.Value:
    value.type, value.name = ir.TensorType(dtype), next(names)
    return value
