"""Queries about a graph that passes and lowerings share."""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
import json
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from compiler.ir.shape_library import ELEMENTS

__all__ = [
    "CODES_ELEMENTWISE",
    "OUTPUT_TYPES",
    "PLAN_DOMAIN",
    "array_of",
    "constant_of",
    "elements_of",
    "graph_attributes",
    "graph_of",
    "graphs_of",
    "nodes_of",
    "opset_of",
    "rank",
    "same_shape",
    "sole_user",
    "static_shape",
    "type_text",
]

PLAN_DOMAIN = "candle.plan"
"""The domain of nodes that exist only in this compiler: passes create them, and lowerings read them."""

CODES_ELEMENTWISE = {"LookUp": 1, "QLinearBinary": 2}
"""The plan's elementwise operators on 8-bit codes → the number of elementwise inputs. Other inputs are parameters."""

OUTPUT_TYPES = "candle_plan.output_types"
"""The key of a graph's metadata for the declared types of its outputs, as a JSON list."""


def constant_of(value: ir.Value | None) -> np.ndarray | None:
    """The value's elements if it is an initializer or a Constant node's output; else `None`."""
    if value is None:
        return None
    producer = value.producer()
    if value.const_value is None and (producer is None or not _is_dense_constant(producer)):
        return None
    if value.const_value is None and producer is not None and (text := _text_of(producer)) is not None:
        return text
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else array_of(tensor)


def _text_of(node: ir.Node) -> np.ndarray | None:
    """The strings of a Constant node with them. The library that makes tensors of other constants takes only ASCII."""
    for name in ("value_string", "value_strings"):
        attribute = node.attributes.get(name)
        if attribute is not None and not attribute.is_ref():
            return np.array(attribute.value, dtype=object)
    return None


def array_of(tensor: ir.TensorProtocol) -> np.ndarray:
    """A tensor's elements; an object array of `str` for strings."""
    array = tensor.numpy()
    if tensor.dtype != ir.DataType.STRING:
        return array
    text = [item.decode("utf-8") if isinstance(item, bytes) else str(item) for item in array.ravel().tolist()]
    return np.array(text, dtype=object).reshape(array.shape)


def _is_dense_constant(node: ir.Node) -> bool:
    is_constant = node.op_identifier() == ("", "Constant", "") and "sparse_value" not in node.attributes
    return is_constant and len(node.attributes) == 1  # a function's Constant may lack its attribute


def elements_of(value: ir.Value | None) -> list[int | str] | None:
    """The elements of an integer list from shape inference, numbers and symbolic expressions; `None` if unknown."""
    array = constant_of(value)
    if array is not None:
        return [int(item) for item in array] if array.ndim == 1 and array.dtype.kind in "iu" else None
    if value is None or ELEMENTS not in value.metadata_props or rank(value) != 1:
        return None
    elements: list[int | str] = json.loads(value.metadata_props[ELEMENTS])
    return elements


def sole_user(value: ir.Value) -> ir.Node | None:
    """The only node that reads the value; `None` if there is no such node, or if a graph returns the value."""
    users = {use.node for use in value.uses()}
    return users.pop() if len(users) == 1 and not value.is_graph_output() else None


def rank(value: ir.Value | None) -> int | None:
    """The number of dimensions; `None` if unknown."""
    return None if value is None or value.shape is None else value.shape.rank()


def same_shape(one: ir.Value | None, other: ir.Value | None) -> bool:
    """Whether both values have the same dimensions: numbers, symbols or expressions."""
    if one is None or other is None or one.shape is None or other.shape is None:
        return False
    return None not in (dim if isinstance(dim, int) else dim.value for dim in one.shape.dims) and (
        one.shape.dims == other.shape.dims
    )


def static_shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The dimensions if all are numbers; else `None`."""
    if value is None or value.shape is None or not value.shape.is_static():
        return None
    return tuple(value.shape.numpy())


def type_text(kind: ir.TypeProtocol | None) -> str | None:
    """A type without its shape, such as `float32` or `sequence of int64`; `None` for an unknown type."""
    if not isinstance(kind, ir.TensorType) and isinstance(kind, ir.SequenceType | ir.OptionalType):
        inner = type_text(kind.elem_type)
        return inner and f"{'sequence of' if isinstance(kind, ir.SequenceType) else 'optional'} {inner}"
    if kind is None or kind.dtype == ir.DataType.UNDEFINED:
        return None
    return {"FLOAT": "float32", "DOUBLE": "float64"}.get(kind.dtype.name, kind.dtype.name.lower())


def graph_of(node: ir.Node) -> ir.Graph:
    """The graph that contains the node.

    Raises:
        ValueError: no graph does. Passes get nodes from graphs, so this is a mistake of a pass.
    """
    if node.graph is None:
        raise ValueError(f"{node.op_type} is in no graph")
    return node.graph


def opset_of(node: ir.Node, default: int) -> int:
    """The node's own opset, or else `default`, the model's."""
    return node.version if node.version is not None else default


def graph_attributes(node: ir.Node) -> Iterator[ir.Graph]:
    """The nested graphs of a node."""
    # The attributes' own `values` is slow, and a compilation asks often.
    for attribute in node.attributes.data.values():
        kind = attribute.type
        if kind == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif kind == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def graphs_of(graph: ir.Graph) -> Iterator[ir.Graph]:
    """The graph and its nested graphs, except the bodies of fused nodes."""
    yield graph
    for node in graph:
        if node.attributes.data and node.domain != PLAN_DOMAIN:
            for nested in graph_attributes(node):
                yield from graphs_of(nested)


def nodes_of(model: ir.Model) -> Iterator[ir.Node]:
    """Every node of the model's graph and of the graphs nested in it."""
    return _all_nodes(model.graph)


def _all_nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    for node in graph:
        yield node
        if node.attributes.data:
            for nested in graph_attributes(node):
                yield from _all_nodes(nested)
