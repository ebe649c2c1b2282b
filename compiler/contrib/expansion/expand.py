"""Expands a node of onnxruntime's own operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

import onnx_ir as ir

from compiler.contrib.expansion.body import Body
from compiler.contrib.expansion.families import FAMILIES
from compiler.contrib.expansion.node import EXPANSIONS, Function, Node
from compiler.errors import CompileError, Diagnostic
from compiler.ir.graph import graph_attributes

__all__ = ["Expansion", "expand", "is_known", "is_operator", "refusals"]


@dataclass(frozen=True)
class Expansion:
    """The nodes and constants that compute a node's outputs.

    They read the node's inputs, but belong to no graph yet. `results` has a value for each output that is in use.
    """

    new: Body
    results: Sequence[ir.Value | None]

    def discard(self) -> None:
        """Removes the nodes from the readers of the node's inputs."""
        nested = [inner for node in self.new.nodes for graph in graph_attributes(node) for inner in graph.all_nodes()]
        for node in (*self.new.nodes, *nested):
            for index in range(len(node.inputs)):
                node.replace_input_with(index, None)


def is_known(node: ir.Node) -> bool:
    """Whether there is an expansion of the node's operator."""
    return is_operator(node.domain, node.op_type)


def is_operator(domain: str, op_type: str) -> bool:
    """Whether there is an expansion of an operator."""
    return (domain, op_type) in FAMILIES or (domain, op_type) in EXPANSIONS


def _function(domain: str, op_type: str) -> Function:
    """The function that expands nodes of an operator. Its family registers it when it is imported."""
    if (domain, op_type) not in EXPANSIONS:
        import_module(f"compiler.contrib.{FAMILIES[domain, op_type]}")
    return EXPANSIONS[domain, op_type]


def expand(node: ir.Node) -> Expansion:
    """The expansion of a node whose operator is known. It depends on the types of the node's inputs.

    Raises:
        CompileError: the expansion does not handle an attribute, input or output of the node, or the types or shapes
            of its inputs are unknown.
    """
    view, new = Node(node), Body(node.graph)
    try:
        found = _function(node.domain, node.op_type)(view, new)
        results = (found,) if isinstance(found, ir.Value) else tuple(found)
        view.check_all_read()
        for index in range(len(node.outputs)):
            if view.uses_output(index) and (index >= len(results) or results[index] is None):
                view.refuse("CC0205", f"output {index} of {node.op_type} is not supported")
    except CompileError:
        Expansion(new, ()).discard()
        raise
    return Expansion(new, results)


def refusals(node: ir.Node) -> list[Diagnostic]:
    """The reasons why a node of a known operator cannot be expanded."""
    try:
        expand(node).discard()
    except CompileError as error:
        return error.diagnostics
    return []
