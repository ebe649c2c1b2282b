"""The text of an ONNX graph: one line for each input, initializer and node. Equal graphs have equal texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import array_of
from compiler.ir.symbols import shown

__all__ = ["graph_nodes", "graph_text", "model_text"]

_SMALL = 8


def graph_text(graph: ir.Graph) -> str:
    """The text of a graph and the graphs nested in it."""
    return _lines(_graph(graph))


def model_text(model: ir.Model) -> str:
    """The text of a model's graph and of its functions."""
    parts = [_lines(_graph(model.graph))]
    for function in model.functions.values():
        name = f"{function.domain}.{function.name}" if function.domain else function.name
        parts.append(f"function {name}:\n" + _lines(f"  {line}" for line in _graph(function.graph)))
    return "".join(parts)


def graph_nodes(graph: ir.Graph) -> list[dict[str, object]]:
    """The nodes of a graph as JSON data, with tensor attributes as in the text and nested graphs as lists of nodes."""
    return [
        {
            "op": node.op_type,
            "domain": node.domain or "ai.onnx",
            "name": node.name,
            "inputs": [None if value is None else value.name for value in node.inputs],
            "outputs": [value.name for value in node.outputs],
            "types": [_type(value) for value in node.outputs],
            "attributes": {name: _data(item) for name, item in sorted(node.attributes.items())},
        }
        for node in graph
    ]


def _data(attribute: ir.Attr) -> object:
    match None if attribute.is_ref() else attribute.type:
        case ir.AttributeType.GRAPH:
            return graph_nodes(attribute.as_graph())
        case ir.AttributeType.INT | ir.AttributeType.FLOAT | ir.AttributeType.STRING:
            return attribute.value
        case ir.AttributeType.INTS | ir.AttributeType.FLOATS | ir.AttributeType.STRINGS:
            return list(attribute.value)
    return _attribute(attribute)


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _graph(graph: ir.Graph) -> Iterator[str]:
    for value in graph.inputs:
        yield f"input {value.name}: {_type(value)}"
    for value in graph.initializers.values():
        elements = "" if value.const_value is None else f" = {_tensor(value.const_value)}"
        yield f"constant {value.name}{elements}"
    for node in graph:
        yield from _node(node)
    yield "return " + ", ".join(value.name or "?" for value in graph.outputs)


def _node(node: ir.Node) -> Iterator[str]:
    outputs = ", ".join(value.name or "_" for value in node.outputs)
    inputs = [value.name or "?" if value is not None else "_" for value in node.inputs]
    nested = {name: item for name, item in node.attributes.items() if item.type == ir.AttributeType.GRAPH}
    attributes = [f"{name}={_attribute(item)}" for name, item in sorted(node.attributes.items()) if name not in nested]
    domain = f"{node.domain}." if node.domain else ""
    version = f":{node.version}" if node.version is not None else ""
    yield f"{outputs} = {domain}{node.op_type}{version}({', '.join([*inputs, *attributes])})"
    for name, item in nested.items():
        yield f"  {name}:"
        yield from (f"    {line}" for line in _graph(item.as_graph()))


def _attribute(attribute: ir.Attr) -> str:
    if attribute.is_ref():  # it refers to an attribute of the enclosing function
        return f"@{attribute.ref_attr_name}"
    value = attribute.value
    if attribute.type == ir.AttributeType.TENSOR:
        return _tensor(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(_scalar(item) for item in value)}]"
    return _scalar(value)


def _scalar(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else str(value)


def _tensor(tensor: ir.TensorProtocol) -> str:
    kind = f"{tensor.dtype.name.lower()}{list(tensor.shape.numpy())}".replace(" ", "")
    if tensor.size > _SMALL:
        return f"{kind} {{…}}"
    elements = array_of(tensor).ravel()
    wide = elements if elements.dtype == object or elements.dtype.kind in "biu" else elements.astype(np.float64)
    return f"{kind} {{{', '.join(_scalar(item) for item in wide.tolist())}}}"


def _type(value: ir.Value) -> str:
    dtype = "?" if value.dtype is None else value.dtype.name.lower()
    return dtype if value.shape is None else f"{dtype}[{', '.join(shown(str(dim)) for dim in value.shape)}]"
