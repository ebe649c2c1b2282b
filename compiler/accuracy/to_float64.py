"""Conversion of a model to double precision, as the reference for rounding errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from compiler.frontend.load import Changed
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import OUTPUT_TYPES, type_text
from compiler.passes.inline_functions import inline_in_one_opset

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compiler.frontend.load import Source

__all__ = ["to_float64", "widened"]

LARGE_WEIGHT = 16 << 20
"""The least bytes of a weight that keeps its type."""

_FIRST_CAST = 6
"""The first opset whose Cast has a number, not a text, for the type."""

_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16})


def to_float64(source: Source | Changed) -> Changed:
    """The model with `double` instead of other floating-point types for inputs, weights and casts.

    Large weights keep their type, and nodes that read them get casts of them, so that few weights are in double
    precision at a time.

    Values that an operator accepts only as float32 (the scales of Resize) keep their type. Functions with attributes
    are inlined, so that the values of the attributes are known. If the opset of such a function differs from the
    model's, `load_model` raises `CompileError`.
    """
    return Changed(source, _widen_model)


def widened(value: Any) -> Any:
    """An input of a run, converted to the input type of the model in double precision."""
    if isinstance(value, list | tuple):
        return [widened(item) for item in value]
    array = np.asarray(value)
    if array.dtype.name not in ("float32", "float16", "bfloat16"):
        return value
    with np.errstate(invalid="ignore"):  # NumPy warns of signaling NaNs
        return array.astype(np.float64)


def _widen_model(model: ir.Model) -> None:
    if any(_has_references(function) for function in model.functions.values()):
        inline_in_one_opset(model)
    kept = set[ir.Value]()
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        for each in (graph, *graph.subgraphs()):
            kept |= _cast_large(each, model.opset_imports)
        for each in (graph, *graph.subgraphs()):
            _widen_graph(each, {*kept, *(value for value in _values(each) if _stays(value, model.opset_imports))})
    model.graph.metadata_props[OUTPUT_TYPES] = json.dumps([type_text(value.type) for value in model.graph.outputs])


def _has_references(function: ir.Function) -> bool:
    nodes = ir.traversal.RecursiveGraphIterator(function.graph)
    return any(attribute.is_ref() for node in nodes for attribute in node.attributes.values())


def _stays(value: ir.Value, opsets: Mapping[str, int]) -> bool:
    """Whether an operator requires the value as float32. The value is not an input of a run."""
    if value.is_graph_input() and not value.is_initializer():
        return False
    for node, index in value.uses():
        taken = onnx_schema.inputs_of(node.domain, node.op_type, opsets.get(node.domain, 1), len(node.inputs))
        if index < len(taken) and "float32" in taken[index].types and "float64" not in taken[index].types:
            return True
    return False


def _cast_large(graph: ir.Graph, opsets: Mapping[str, int]) -> set[ir.Value]:
    """Cast large weights before each node that reads them, and return these weights."""
    large = [value for value in graph.initializers.values() if _is_cast(value, opsets)]
    for weight in large:
        for number, (reader, index) in enumerate(tuple(weight.uses())):
            cast = ir.node("Cast", [weight], {"to": int(ir.DataType.DOUBLE)}, name=f"{weight.name}_wide_{number}")
            wide = cast.outputs[0]
            wide.name, wide.shape, wide.type = cast.name, weight.shape, ir.TensorType(ir.DataType.DOUBLE)
            origin.inherit([cast], [reader])
            reader.replace_input_with(index, wide)
            assert reader.graph is not None
            reader.graph.insert_before(reader, cast)
    return set(large)


def _is_cast(value: ir.Value, opsets: Mapping[str, int]) -> bool:
    """Whether a weight is large, no operator requires its type, and the operator Cast takes a number."""
    tensor = value.const_value
    is_only_read = not value.is_graph_input() and not value.is_graph_output()
    return (
        is_only_read
        and tensor is not None
        and tensor.dtype in _FLOATS
        and tensor.nbytes >= LARGE_WEIGHT
        and opsets.get("", 1) >= _FIRST_CAST
        and not _stays(value, opsets)
    )


def _widen_graph(graph: ir.Graph, staying: set[ir.Value]) -> None:
    for value in _values(graph):
        if value in staying:
            continue
        if value.const_value is not None:
            value.const_value = _widen_tensor(value.const_value)
        if value.type is not None:
            value.type = _widen_type(value.type)
    for node in graph:
        if not staying.isdisjoint(node.outputs):
            continue
        attributes = [_widen_attribute(attribute) for attribute in node.attributes.values()]
        node.attributes.clear()
        node.attributes.update({attribute.name: attribute for attribute in attributes})
        if node.op_identifier() == ("", "ConstantOfShape", "") and "value" not in node.attributes:
            node.attributes["value"] = ir.AttrTensor("value", ir.tensor(np.zeros(1)))


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


def _widen_attribute(attribute: ir.Attr) -> ir.Attr:
    """Widen tensors, numbers that become tensors, and attributes for result types: `to` of Cast, `dtype`."""
    name, value = attribute.name, attribute.value
    if name in ("value_float", "value_floats"):
        return ir.AttrTensor("value", ir.tensor(np.array(value, np.float64)))
    if attribute.type == ir.AttributeType.TENSOR:
        return ir.AttrTensor(name, _widen_tensor(value))
    if attribute.type == ir.AttributeType.INT and name in ("to", "dtype", "output_dtype") and value in _FLOATS:
        return ir.AttrInt64(name, int(ir.DataType.DOUBLE))
    return attribute


def _widen_tensor(tensor: Any) -> Any:
    return ir.tensor(tensor.numpy().astype(np.float64), name=tensor.name) if tensor.dtype in _FLOATS else tensor


def _widen_type(kind: Any) -> Any:
    if isinstance(kind, ir.TensorType):
        return ir.TensorType(ir.DataType.DOUBLE) if kind.dtype in _FLOATS else kind
    return type(kind)(_widen_type(kind.elem_type))
