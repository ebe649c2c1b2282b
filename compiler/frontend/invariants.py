"""The invariants of a model's graph, checked when it is loaded and, on demand, after every pass.

1. An input, an initializer or a node, in the same or an enclosing graph, defines every value that a node reads or a
   graph returns.
2. Nodes are sorted: a node's inputs are defined before it.
3. The numbers of a node's inputs and outputs are allowed by its operator, and the required inputs are present.
4. A node has the attributes that its operator requires, with the required types.
5. The model has outputs. Its inputs have different names, and so do its outputs.
6. Back references are correct: nodes, inputs, outputs and initializers refer to their graph; values refer to the node
   that computes them and to the nodes that read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import graph_attributes, nodes_of, opset_of

if TYPE_CHECKING:
    from onnx.defs import OpSchema

__all__ = ["violations"]


def violations(model: ir.Model) -> list[Diagnostic]:
    """Every violation, in the order of the invariants."""
    checks = (_defined_in_order, _arity, _attributes, _names, _ownership)
    return [diagnostic for check in checks for diagnostic in check(model)]


def _defined_in_order(model: ir.Model) -> Iterator[Diagnostic]:
    """Invariants 1 and 2."""
    everywhere = {value for node in nodes_of(model) for value in node.outputs}
    yield from _graph_in_order(model.graph, set(), everywhere)


def _graph_in_order(graph: ir.Graph, outer: set[ir.Value], everywhere: set[ir.Value]) -> Iterator[Diagnostic]:
    known = outer | set(graph.inputs) | set(graph.initializers.values())
    for node in graph:
        for value in node.inputs:
            if value is not None and value not in known:
                problem = "is read before it is defined" if value in everywhere else "is not defined"
                yield Diagnostic("CC0106", f"the value {value.name!r} {problem}", origin.of(node))
        for nested in graph_attributes(node):
            yield from _graph_in_order(nested, known, everywhere)
        known.update(node.outputs)
    for value in graph.outputs:
        if value not in known:
            yield Diagnostic("CC0106", f"the output {value.name!r} is not defined")


def _schema_of(node: ir.Node, model: ir.Model) -> OpSchema | None:
    opset = opset_of(node, model.opset_imports.get(node.domain, 1))
    return onnx_schema.schema(node.domain, node.op_type, opset)


def _arity(model: ir.Model) -> Iterator[Diagnostic]:
    """Invariant 3."""
    for node in nodes_of(model):
        schema = _schema_of(node, model)
        if schema is None:
            continue
        present = [index for index, value in enumerate(node.inputs) if value is not None]
        count = present[-1] + 1 if present else 0
        for index, name in onnx_schema.required_inputs(schema.domain, schema.name, schema.since_version):
            if index < count and node.inputs[index] is None:
                yield Diagnostic("CC0205", f"{node.op_type} needs the input {name}", origin.of(node))
        if not schema.min_input <= count <= schema.max_input:
            message = f"{node.op_type} takes {_range(schema.min_input, schema.max_input)} inputs, found {count}"
            yield Diagnostic("CC0205", message, origin.of(node))
        if len(node.outputs) > schema.max_output:
            message = f"{node.op_type} has at most {schema.max_output} outputs, found {len(node.outputs)}"
            yield Diagnostic("CC0205", message, origin.of(node))


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} or more" if high > 1000 else f"{low} to {high}"


def _attributes(model: ir.Model) -> Iterator[Diagnostic]:
    """Invariant 4. The lowering reads or refuses attributes that the operator does not define."""
    for node in nodes_of(model):
        schema = _schema_of(node, model)
        if schema is None:
            continue
        for name, described in schema.attributes.items():
            attribute = node.attributes.get(name)
            if attribute is None and described.required:
                yield Diagnostic("CC0202", f"{node.op_type} needs the attribute {name}", origin.of(node))
            elif attribute is not None and attribute.type != (kind := _kind(described)) and attribute.value != ():
                message = f"{node.op_type}'s attribute {name} is {attribute.type.name}, not {kind.name}"
                yield Diagnostic("CC0202", message, origin.of(node))


def _kind(attribute: OpSchema.Attribute) -> ir.AttributeType:
    return ir.AttributeType(int(attribute.type))  # type: ignore[call-overload]


def _names(model: ir.Model) -> Iterator[Diagnostic]:
    """Invariant 5."""
    if not model.graph.outputs:
        yield Diagnostic("CC0106", "the model has no outputs")
    for kind, values in (("input", model.graph.inputs), ("output", model.graph.outputs)):
        names = [value.name or "" for value in values]
        for name in sorted({name for name in names if names.count(name) > 1 or not name}):
            yield Diagnostic("CC0106", f"{names.count(name)} {kind}s have the name {name!r}")


def _ownership(model: ir.Model) -> Iterator[Diagnostic]:
    """Invariant 6."""

    @cache  # many nodes may read a value
    def uses(value: ir.Value) -> frozenset[tuple[ir.Node, int]]:
        return frozenset(value.uses())

    for graph in (model.graph, *model.graph.subgraphs()):
        values = [(value, value.is_graph_input()) for value in graph.inputs]
        values += [(value, value.is_initializer()) for value in graph.initializers.values()]
        values += [(value, value.is_graph_output()) for value in graph.outputs]
        for value in (value for value, knows in values if not knows):
            yield Diagnostic("CC0501", f"the value {value.name!r} does not know that a graph has it")
        for node in graph:
            if node.graph is not graph:
                yield Diagnostic("CC0501", f"{node.op_type} does not know its graph", origin.of(node))
            made = (value.producer() is node and value.index() == at for at, value in enumerate(node.outputs))
            read = ((node, at) in uses(value) for at, value in enumerate(node.inputs) if value is not None)
            if not all(made) or not all(read):
                yield Diagnostic("CC0501", f"a value of {node.op_type} does not know the node", origin.of(node))
