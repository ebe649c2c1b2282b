"""Nodes in the order of their data."""

from __future__ import annotations

import onnx_ir as ir

from compiler import origin
from compiler.errors import CompileError, Diagnostic
from compiler.graph import nodes_of
from compiler.passes.report import Fired, Pass, Report

__all__ = ["sort_nodes"]


def _sort_nodes(model: ir.Model, report: Report) -> None:
    """Sorts the nodes of every graph, stably: files may hold them in any order."""
    before = list(nodes_of(model))
    try:
        model.graph.sort()
    except ValueError:
        raise CompileError([Diagnostic("CC0105", f"the graph has a cycle through {_cycle(model)}")]) from None
    moved = [node for node, old in zip(nodes_of(model), before, strict=True) if node is not old]
    report.fired.extend(Fired("move", origin.of(node)) for node in moved)


def _cycle(model: ir.Model) -> str:
    """The nodes that wait for each other: what is left when all others are taken away."""
    left = dict.fromkeys(model.graph)
    while ready := [node for node in left if not any(other in left for other in node.predecessors())]:
        for node in ready:
            del left[node]
    names = [" + ".join(origin.of(node).nodes) for node in left]
    return (
        ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "") if names else "nested graphs"
    )


sort_nodes = Pass("sort_nodes", _sort_nodes, ensures=frozenset({"sorted"}), needed=True)
