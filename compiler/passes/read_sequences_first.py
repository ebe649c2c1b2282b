"""Moves readers of a sequence before the operator that changes it, so that the runtime can change it in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.ir import origin
from compiler.ir.graph import graph_attributes, graphs_of
from compiler.rewrite.report import Fired, Pass, PassReport

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["read_sequences_first"]

_CHANGING = ("SequenceInsert", "SequenceErase")


def _read_sequences_first(model: ir.Model, report: PassReport) -> None:
    for graph in list(graphs_of(model.graph)):
        changing = [node for node in graph if node.op_type in _CHANGING and node.domain == ""]
        if not changing:
            continue
        places = {node: at for at, node in enumerate(graph)}
        for node in changing:
            for reader in _later_readers(node, places):
                graph.remove(reader)
                graph.insert_before(node, reader)
                places[reader] = places[node]  # after every node that it reads, like `node`
                report.fired.append(Fired("move", origin.of(reader)))


def _later_readers(node: ir.Node, places: dict[ir.Node, int]) -> list[ir.Node]:
    """The nodes after `node` that read the same sequence, and could run before it."""
    at, sequence = places[node], node.inputs[0]
    if sequence is None:
        return []
    readers = dict.fromkeys(use.node for use in sequence.uses())
    behind = [reader for reader in readers if places.get(reader, -1) > at]
    return [reader for reader in behind if _reads_only_before(reader, at, places)]


def _reads_only_before(reader: ir.Node, at: int, places: dict[ir.Node, int]) -> bool:
    """Whether all inputs of a node are computed before this place. Nested graphs may read more than the inputs."""
    if any(True for _ in graph_attributes(reader)):
        return False
    producers = (value.producer() for value in reader.inputs if value is not None)
    return all(producer is None or places.get(producer, -1) < at for producer in producers)


read_sequences_first = Pass("read_sequences_first", _read_sequences_first, result="nodes moved")
