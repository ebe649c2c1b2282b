"""An ONNX graph as text: one line an input, initializer and node; the same text for the same graph."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from compiler.graph import array_of

__all__ = ["graph_text"]

_SMALL = 8


def graph_text(graph: ir.Graph) -> str:
    """The text of a graph and the graphs nested in it."""
    return "\n".join(_graph(graph)) + "\n"


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
    return dtype if value.shape is None else f"{dtype}[{', '.join(str(dim) for dim in value.shape)}]"
