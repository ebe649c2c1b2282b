"""Sorts nodes so that each node follows the nodes whose results it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import onnx_ir as ir

from compiler.errors import CompileError, Diagnostic
from compiler.ir import origin
from compiler.ir.graph import graph_attributes, nodes_of
from compiler.rewrite.report import Fired, Pass, PassReport

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["sort_nodes"]

_MOST_NAMES = 5


def _sort_nodes(model: ir.Model, report: PassReport) -> None:
    """Sorts the nodes of every graph stably, because files may hold them in any order."""
    before = list(nodes_of(model))
    try:
        model.graph.sort()
    except ValueError:
        raise CompileError([Diagnostic("CC0105", f"the graph has a cycle: {_cycle(model)}")]) from None
    moved = [node for node, old in zip(nodes_of(model), before, strict=True) if node is not old]
    report.fired.extend(Fired("move", origin.of(node)) for node in moved)


def _cycle(model: ir.Model) -> str:
    """The nodes of a cycle, each after a node that it depends on."""
    import networkx as nx  # slow to import, and few models have cycles

    for graph in (model.graph, *model.graph.subgraphs()):
        try:
            edges = nx.find_cycle(_dependences(graph))
        except nx.NetworkXNoCycle:
            continue
        names = [" + ".join(origin.of(node).nodes) for node, _ in edges]
        left_out = [f"({len(names) - _MOST_NAMES} more)"] if len(names) > _MOST_NAMES else []
        return " → ".join([*names[:_MOST_NAMES], *left_out, names[0]])
    raise ValueError("the graph has no cycle")


def _dependences(graph: ir.Graph) -> nx.DiGraph:
    """Edges from nodes to the readers of their results. A node also reads the values that its nested graphs read."""
    inside = set(graph)
    import networkx as nx

    edges = nx.DiGraph()
    edges.add_nodes_from(graph)  # the text of the cycle begins with the first node in the file
    for node in graph:
        readers = [node, *(inner for nested in graph_attributes(node) for inner in nested.all_nodes())]
        edges.add_edges_from((above, node) for reader in readers for above in reader.predecessors() if above in inside)
    return edges


sort_nodes = Pass("sort_nodes", _sort_nodes, result="nodes moved", ensures=frozenset({"sorted"}), needed=True)
