"""Replaces operators that have no lowering: the standard's with their function bodies, onnxruntime's with expansions.

The lowering reports an operator of onnxruntime's that cannot be expanded, because a later pass may find the types that
its expansion needs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir

from compiler import contrib
from compiler.errors import CompileError, Diagnostic
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import graph_attributes, nodes_of, opset_of
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.inline_functions import inline
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.rule import insert, replace_uses

__all__ = ["expand_functions"]

_DEPTH = 8
"""The limit of nested expansions. The standard's function bodies nest two deep."""


def expand_functions(can_lower: Callable[[ir.Node], bool]) -> Pass:
    """The pass that expands nodes for which `can_lower` is false."""

    def expand(model: ir.Model, report: PassReport) -> None:
        """Replaces operators without a lowering with their function bodies or expansions."""
        if _expand_contrib(model, can_lower, report):
            infer_shapes.run(model)
        wrong: set[ir.Node] = set()
        for depth in range(_DEPTH):
            found = []
            for node in [node for node in nodes_of(model) if not can_lower(node) and node not in wrong]:
                if problem := _problem(model, node):
                    report.refused.append(Diagnostic("CC0210", f"{node.op_type}: {problem}", origin.of(node)))
                    wrong.add(node)
                elif _add_function(model, node, depth):
                    found.append(node)
            if not found:
                break
            report.fired.extend(Fired(f"expand {node.op_type}", origin.of(node)) for node in found)
            inline(model)
            model.functions.clear()
            infer_shapes.run(model)  # the expansion of a body can depend on the types of its inputs

    return Pass(
        "expand_functions",
        expand,
        result="operators expanded",
        requires=frozenset({"sorted", "inlined", "shapes"}),
        needed=True,
    )


def _expand_contrib(model: ir.Model, can_lower: Callable[[ir.Node], bool], report: PassReport) -> bool:
    """Replaces the operators of onnxruntime that can be expanded; returns whether there was one."""
    found = False
    for node in [node for node in nodes_of(model) if contrib.is_known(node) and not can_lower(node)]:
        try:
            expansion = contrib.expand(node)
        except CompileError:
            continue
        if node.graph is None:
            raise ValueError(f"{node.op_type} is in no graph")
        origin.inherit(_with_nested(expansion.new.nodes), [node])
        insert(node.graph, node, expansion.new)
        for old, result in zip(node.outputs, expansion.results, strict=False):
            if result is not None:
                replace_uses(old, result)
        report.fired.append(Fired(f"expand {node.op_type}", origin.of(node)))
        node.graph.remove(node, safe=True)
        found = True
    return found


def _with_nested(nodes: list[ir.Node]) -> list[ir.Node]:
    return [*nodes, *(inner for node in nodes for graph in graph_attributes(node) for inner in graph.all_nodes())]


def _problem(model: ir.Model, node: ir.Node) -> str | None:
    """An error that the body would hide, because the body may broadcast shapes that the operator rejects."""
    takes = [len(graph.inputs) for graph in graph_attributes(node) if node.op_type == "SequenceMap"]
    if takes and takes != [len(node.inputs)]:
        return f"the body takes {takes[0]} inputs, but the node has {len(node.inputs)}"
    opset = opset_of(node, model.opset_imports.get(node.domain, 1))
    return onnx_schema.contradiction(ir.serde.serialize_node(node), opset, _input_types(node))


def _add_function(model: ir.Model, node: ir.Node, depth: int) -> bool:
    """Adds the node's body to the model as a function that only this node calls; returns whether there is a body."""
    opset = opset_of(node, model.opset_imports.get(node.domain, 1))
    proto = ir.serde.serialize_node(node)
    body = onnx_schema.function_body(proto, opset, _input_types(node))
    if body is None:
        return False
    captures = _captures(node)
    body.input.extend(value.name for value in captures)
    body.overload = f"{depth}.{len(model.functions)}"
    _complete_outputs(body, len(node.outputs))
    try:
        function = ir.serde.deserialize_function(body)
    except ir.serde.SerdeError:
        return False  # neither the node nor the body states the types of a graph
    model.functions[function.identifier()] = function
    _call(node, function, captures, onnx_schema.defaults(node.domain, node.op_type, opset))
    return True


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


def _input_types(node: ir.Node) -> list[Any]:
    """The types and shapes of the inputs as protos; an empty list if a type is unknown."""
    if any(value is not None and value.type is None for value in node.inputs):
        return []
    return [None if value is None else ir.serde.serialize_value(value).type for value in node.inputs]
