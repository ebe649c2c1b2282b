"""Replaces SplitToSequence with Split if all of its readers are SequenceAt with constant positions."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import constant_of, nodes_of
from compiler.ir.inference import NewNodes
from compiler.ir.views.source import resolved
from compiler.ir.views.split import SplitToSequenceView
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert, replace_uses

__all__ = ["split_sequences"]


def _split_sequences(model: ir.Model, report: PassReport) -> None:
    """Replaces a SplitToSequence whose readers are SequenceAt at constant positions with Split, and maybe Squeeze."""
    known = NewNodes(model)
    for node in list(nodes_of(model)):
        view = SplitToSequenceView[ir.Value].of(node)
        if view is not None:
            here = origin.of(node)
            reason = _split(node, view, known)
            if reason is None:
                report.fired.append(Fired("split", here))
            else:
                report.missed.append(Missed("split", here, reason))


def _split(node: ir.Node, view: SplitToSequenceView[ir.Value], known: NewNodes) -> str | None:
    """Rewrites one node; returns the reason if it cannot."""
    sizes = _sizes(view)
    if sizes is None:
        return "the sizes of the parts are not known"
    readers = _readers(node.outputs[0], len(sizes))
    if isinstance(readers, str):
        return readers
    graph = node.graph
    if graph is None:
        return "the node is in no graph"
    new = Rewriter(graph)
    given = new.constant(np.array(sizes, np.int64), "sizes")
    parts = new.op("Split", view.x, given, outputs=len(sizes), version=13, axis=view.axis)
    if not view.keeps_axis:
        where = new.constant(np.array([view.axis], np.int64), "axes")
        parts = tuple(new.op("Squeeze", part, where, version=13) for part in parts)
    known.infer(new.nodes)
    origin.inherit(new.nodes, [node])
    insert(graph, node, new)
    for reader, index in readers:
        replace_uses(reader.outputs[0], parts[index])
        if reader.graph is not None:
            reader.graph.remove(reader, safe=True)
    graph.remove(node, safe=True)
    return None


def _sizes(view: SplitToSequenceView[ir.Value]) -> tuple[int, ...] | None:
    """The sizes of the parts along the axis."""
    shape = None if view.x is None else view.x.shape
    axis = None if shape is None else resolved(view.axis, len(shape))
    size = None if shape is None or axis is None else shape[axis]
    return view.sizes(size if isinstance(size, int) else None)


def _readers(sequence: ir.Value, count: int) -> list[tuple[ir.Node, int]] | str:
    """The nodes that read parts, and the index of each part; or the reason why the sequence is needed."""
    readers = []
    for use in sequence.uses():
        node = use.node
        position = constant_of(node.inputs[1]) if node.op_type == "SequenceAt" and node.domain == "" else None
        if position is None:
            return f"{node.op_type} reads the sequence, or a position that is not constant"
        index = int(position)
        if not -count <= index < count:
            return f"position {index} is outside the {count} parts"
        readers.append((node, index % count))
    if sequence.is_graph_output():
        return "the sequence is an output"
    return readers


split_sequences = Pass("split_sequences", _split_sequences, result="sequences split", requires=frozenset({"shapes"}))
