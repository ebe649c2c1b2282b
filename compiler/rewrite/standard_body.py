"""The body of a function of the ONNX standard, as a function of the model that one node calls."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.ir import onnx_schema
from compiler.ir.graph import graph_attributes

__all__ = ["call_standard_body", "input_types"]


def call_standard_body(node: ir.Node, opset: int, overload: str) -> ir.Function | None:
    """Turns a node into a call of the body that the standard gives its operator at `opset`, and returns this function.

    The function has the given overload, which no other function of the operator may have. Returns `None`, and leaves
    the node as it is, if the standard has no body, or if the body depends on types that are unknown.
    """
    body = onnx_schema.function_body(ir.serde.serialize_node(node), opset, input_types(node))
    if body is None:
        return None
    captures = _captures(node)
    body.input.extend(value.name for value in captures)
    body.overload = overload
    _complete_outputs(body, len(node.outputs))
    try:
        function = ir.serde.deserialize_function(body)
    except ir.serde.SerdeError:
        return None  # neither the node nor the body states the types of a graph
    _call(node, function, captures, onnx_schema.defaults(node.domain, node.op_type, opset))
    return function


def input_types(node: ir.Node) -> list[Any]:
    """The types and shapes of the inputs as protos; an empty list if a type is unknown."""
    if any(value is not None and value.type is None for value in node.inputs):
        return []
    return [None if value is None else ir.serde.serialize_value(value).type for value in node.inputs]


def _call(node: ir.Node, function: ir.Function, captures: list[ir.Value], defaults: list[Any]) -> None:
    """Turns the node into a call of the function."""
    node.overload = function.overload
    for attribute in defaults:
        if attribute.name not in node.attributes:
            node.attributes.add(ir.serde.deserialize_attribute(attribute))
    for name, given in list(node.attributes.items()):
        if given.type == ir.AttributeType.GRAPH:
            del node.attributes[name]  # the body already contains its value
    if captures:
        absent = [None] * (len(function.inputs) - len(captures) - len(node.inputs))
        given_inputs = [*node.inputs, *absent, *captures]
        node.resize_inputs(len(given_inputs))
        for index, value in enumerate(given_inputs):
            node.replace_input_with(index, value)


def _captures(node: ir.Node) -> list[ir.Value]:
    """The outer values that the node's graphs read. The function needs them as inputs."""
    graphs = [graph for nested in graph_attributes(node) for graph in (nested, *nested.subgraphs())]
    used = [value for graph in graphs for inner in graph for value in inner.inputs if value is not None]
    used += [value for graph in graphs for value in graph.outputs]
    return [value for value in dict.fromkeys(used) if value.graph not in graphs]


def _complete_outputs(body: Any, count: int) -> None:
    """Adds the optional outputs that a body lacks, because inlining needs a value for each."""
    del body.output[count:]
    made = {name for node in body.node for name in node.output} | set(body.input)
    for name in body.output:
        if name not in made:
            body.node.add(op_type="Identity", input=[body.output[0]], output=[name])
