"""Drops unused nodes and initializers."""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import graph_attributes
from compiler.rewrite.report import Fired, Pass, PassReport

__all__ = ["drop_dead_nodes"]


def _drop_dead_nodes(model: ir.Model, report: PassReport) -> None:
    """Drops nodes and initializers without readers."""
    _clean(model.graph, report)


def _clean(graph: ir.Graph, report: PassReport) -> None:
    for node in reversed(graph):
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            report.fired.append(Fired("drop", origin.of(node)))
            graph.remove(node, safe=True)
            continue
        for nested in graph_attributes(node):
            _clean(nested, report)
    for value in list(graph.initializers.values()):
        if not value.uses() and not value.is_graph_output() and value.name is not None:
            del graph.initializers[value.name]


drop_dead_nodes = Pass(
    "drop_dead_nodes", _drop_dead_nodes, result="unused parts dropped", requires=frozenset({"sorted"})
)
