"""Replaces an If whose condition is constant with the nodes of the branch that the condition selects."""

from __future__ import annotations

from collections.abc import Iterator

import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import constant_of, graphs_of
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.rule import Rewriter, replace_uses

__all__ = ["inline_branches"]


def _inline_branches(model: ir.Model, report: PassReport) -> None:
    """Replaces an If with a constant condition with the nodes of the selected branch."""
    # Inner branches first, so that a moved branch contains no known condition anymore.
    for graph in reversed([*graphs_of(model.graph)]):
        taken: set[str] = set()
        for node in list(graph):
            if node.op_identifier() != ("", "If", "") or node.graph is not graph:
                continue
            condition = constant_of(node.inputs[0])
            if condition is not None and condition.size == 1:
                report.fired.append(Fired("take a branch", origin.of(node)))
                taken = taken or {value.name or "" for value in _values(graph)}
                _take(graph, node, "then_branch" if condition.item() else "else_branch", taken)


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    yield from graph.initializers.values()
    for node in graph:
        yield from node.outputs


def _take(graph: ir.Graph, node: ir.Node, name: str, taken: set[str]) -> None:
    """Moves the branch's nodes before the If, and renames values whose names the graph already has."""
    branch = node.attributes[name].as_graph()
    results = list(branch.outputs)
    branch.outputs.clear()
    for value in list(branch.initializers.values()):
        del branch.initializers[value.name or ""]
        value.name = _fresh_name(taken, value.name or "constant")
        graph.register_initializer(value)
    nodes = list(branch)
    branch.remove(nodes)
    for value in (value for each in nodes for value in each.outputs if value.name):
        value.name = _fresh_name(taken, value.name or "")
    graph.insert_before(node, nodes)
    for old, result in zip(node.outputs, results, strict=True):
        replace_uses(old, result if result.producer() in nodes else _copy(graph, node, result))
    graph.remove(node, safe=True)


def _copy(graph: ir.Graph, before: ir.Node, value: ir.Value) -> ir.Value:
    """A copy, by an Identity, of a value that the branch does not compute."""
    new = Rewriter(graph)
    result = new.op("Identity", value)
    result.type, result.shape = value.type, value.shape
    origin.inherit(new.nodes, [before])
    graph.insert_before(before, new.nodes)
    return result


def _fresh_name(taken: set[str], name: str) -> str:
    """A name that is not in `taken`; adds it to `taken`."""
    number, candidate = 0, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    taken.add(candidate)
    return candidate


inline_branches = Pass(
    "inline_branches", _inline_branches, result="branches inlined", requires=frozenset({"sorted"}), needed=True
)
