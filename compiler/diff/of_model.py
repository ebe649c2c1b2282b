"""The conversion of a model to a `Graph`, and the facts of its file."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.diff.graph import Array, Constant, Graph, Node, digest_of, prefix_of_places
from compiler.ir import origin
from compiler.ir.graph import array_of, constant_of
from compiler.ir.symbols import shown

__all__ = ["model_facts", "model_graph"]

_SMALL = 8
"""The number of elements that a text shows. It has the digest of a larger tensor."""


def model_graph(model: ir.Model) -> Graph:
    """The graph of a model. Nodes with the operator Constant are constants of the graph."""
    graph = model.graph
    found = _values(graph)
    prefix = prefix_of_places([value.name or "" for value in found])
    values = {value: value.name or f"{prefix}{at}" for at, value in enumerate(found)}
    read = {
        value: array_of(value.const_value) for value in graph.initializers.values() if value.const_value is not None
    }
    for node in graph:
        if node.op_identifier() == ("", "Constant", "") and (array := constant_of(node.outputs[0])) is not None:
            read[node.outputs[0]] = array
    return Graph(
        "model",
        {values[value]: _type(value) for value in graph.inputs},
        {values[value]: _type(value) for value in graph.outputs},
        tuple(_node(node, values) for node in graph if not set(node.outputs) & read.keys()),
        {values[value]: _constant(values[value], array) for value, array in read.items()},
        frozenset(value.name for value in values if value.name),
    )


def model_facts(model: ir.Model) -> dict[str, dict[str, int] | str]:
    """The opsets of a model, and each of its functions with a digest."""
    functions = {f"{each.domain}.{each.name}".lstrip("."): each.graph for each in model.functions.values()}
    opsets = {domain or "ai.onnx": opset for domain, opset in model.opset_imports.items()}
    return {"opsets": opsets, **{f"function {name}": _graph_text(graph) for name, graph in sorted(functions.items())}}


def _values(graph: ir.Graph) -> list[ir.Value]:
    """The values of a graph, and those of enclosing graphs that its nodes read, each once."""
    inner = (value for node in graph for value in (*node.inputs, *node.outputs) if value is not None)
    return list(dict.fromkeys([*graph.inputs, *graph.initializers.values(), *inner, *graph.outputs]))


def _node(node: ir.Node, values: dict[ir.Value, str]) -> Node:
    return Node(
        f"{node.domain}.{node.op_type}".lstrip("."),
        tuple(None if value is None else values[value] for value in node.inputs),
        tuple(values[value] if value.name else None for value in node.outputs),
        {name: _attribute(each) for name, each in sorted(node.attributes.items())},
        origin.of(node),
    )


def _constant(name: str, array: Array) -> Constant:
    is_text = array.dtype == object
    size = sum(len(each.encode()) for each in array.ravel()) if is_text else array.nbytes
    return Constant(name, "string" if is_text else array.dtype.name, array.shape, size, lambda: array)


def _attribute(attribute: ir.Attr) -> str:
    """The text of an attribute. The text of a tensor or graph has a digest instead of its content."""
    if attribute.is_ref():
        return f"@{attribute.ref_attr_name}"
    match attribute.type:
        case ir.AttributeType.TENSOR:
            return _tensor(attribute.as_tensor())
        case ir.AttributeType.TENSORS:
            return ", ".join(map(_tensor, attribute.as_tensors()))
        case ir.AttributeType.GRAPH:
            return _graph_text(attribute.as_graph())
        case ir.AttributeType.GRAPHS:
            return ", ".join(map(_graph_text, attribute.as_graphs()))
    value: Any = attribute.value
    return str(list(value) if isinstance(value, tuple) else value)


def _tensor(tensor: ir.TensorProtocol) -> str:
    array = array_of(tensor)
    content = array.tolist() if array.size <= _SMALL and array.dtype.kind in "biufOUS" else digest_of(array)
    return f"{array.dtype.name} {list(array.shape)} {content}"


def _graph_text(graph: ir.Graph) -> str:
    """The text of a nested graph or function: the number of its nodes and a digest."""
    nodes = [
        [
            node.domain,
            node.op_type,
            [None if value is None else value.name for value in node.inputs],
            [value.name for value in node.outputs],
            {name: _attribute(each) for name, each in node.attributes.items()},
        ]
        for node in graph
    ]
    weights = {
        name: _tensor(value.const_value) for name, value in graph.initializers.items() if value.const_value is not None
    }
    ends = [[value.name for value in values] for values in (graph.inputs, graph.outputs)]
    return f"{len(nodes)} node{'s' * (len(nodes) != 1)} {digest_of([nodes, weights, ends])}"


def _type(value: ir.Value) -> str:
    from compiler.ir.graph import type_text

    kind = type_text(value.type) or "?"
    return kind if value.shape is None else f"{kind} [{', '.join(shown(str(dim)) for dim in value.shape)}]"
