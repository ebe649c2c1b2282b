"""Fuses elementwise functions into the preceding matrix product or convolution, which applies them before storing.

The operator becomes a node of domain `candle.plan` with two more attributes. `epilogue` is a graph of the fused nodes;
its first input is the operator's result. `operands` is the number of inputs of the operator itself; the node's
remaining inputs are the other inputs of the graph. Tensors whose elements are all equal are initializers of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import PLAN_DOMAIN, graph_of, graphs_of
from compiler.rewrite.fused_body import MOST_NODES, body_of
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert, replace_uses

__all__ = ["fuse_epilogues"]

Question = Callable[[ir.Node], bool]


def fuse_epilogues(takes_epilogue: Question, is_elementwise: Question) -> Pass:
    """The pass that fuses nodes for which `is_elementwise` is true into nodes for which `takes_epilogue` is true."""

    def fuse(model: ir.Model, report: PassReport) -> None:
        """Fuses elementwise functions into the operator whose result they read."""
        for graph in graphs_of(model.graph):
            order = {node: index for index, node in enumerate(graph)}
            for node in order:
                if node.graph is graph and "epilogue" not in node.attributes and takes_epilogue(node):
                    _fuse(node, order, is_elementwise, report)

    return Pass("fuse_epilogues", fuse, result="steps fused", requires=frozenset({"shapes", "sorted"}))


def _fuse(root: ir.Node, order: Mapping[ir.Node, int], is_elementwise: Question, report: PassReport) -> None:
    result = root.outputs[0]
    if not any(is_elementwise(node) for node in _readers(result)):
        return
    if result.dtype != ir.DataType.FLOAT:
        report.missed.append(Missed("fuse", origin.of(root), f"the type is {result.dtype}, not float32"))
        return
    if result.shape is None:
        report.missed.append(Missed("fuse", origin.of(root), "the result's rank is not known"))
        return
    region = _Region(root, order, is_elementwise)
    chosen = region.grow()
    if region.reason:
        report.missed.append(Missed("fuse", origin.of(root), region.reason))
    if chosen:
        report.fired.append(Fired(f"fuse {' + '.join(node.op_type for node in (root, *chosen))}", origin.of(root)))
        _replace(root, chosen)


class _Region:
    """Nodes after a root that depend only on its result and on values that broadcast to it."""

    def __init__(self, root: ir.Node, order: Mapping[ir.Node, int], is_elementwise: Question) -> None:
        self.root, self.order, self.is_elementwise = root, order, is_elementwise
        self.nodes: list[ir.Node] = []
        self.inner: dict[ir.Value, None] = {root.outputs[0]: None}
        self.reason = ""

    def grow(self) -> list[ir.Node]:
        """The largest set of nodes, in order, such that only the last node has readers outside."""
        closed = 0
        while len(self.nodes) < MOST_NODES:
            node = self.next()
            if node is None:
                break
            self.nodes.append(node)
            self.inner[node.outputs[0]] = None
            if self.is_closed():
                closed = len(self.nodes)
        if closed < len(self.nodes) and not self.reason:
            escaping = next(value for value in self.inner if self.escapes(value))
            self.reason = f"{escaping.name!r} is needed elsewhere too"
        return self.nodes[:closed]

    def next(self) -> ir.Node | None:
        """The first node, in the graph's order, that can join."""
        self.reason = ""
        readers = {node for value in self.inner for node in _readers(value)} - set(self.nodes)
        here = sorted((node for node in readers if node in self.order), key=self.order.__getitem__)
        return next((node for node in here if self.can_join(node)), None)

    def can_join(self, node: ir.Node) -> bool:
        """Whether the node computes float32 elements from available values. Otherwise `reason` may say why not."""
        if len(node.outputs) != 1 or not self.is_elementwise(node):
            return False
        if any(value.dtype != ir.DataType.FLOAT for value in (*node.inputs, *node.outputs) if value is not None):
            return False
        for value in node.inputs:
            if value is not None and value not in self.inner and not self.broadcasts(value):
                self.reason = f"{value.name!r} may be larger than the result"
                return False
        return True

    def broadcasts(self, value: ir.Value) -> bool:
        """Whether the value broadcasts to the result without enlarging it."""
        result = self.root.outputs[0].shape
        if value.shape is None or result is None or len(value.shape) > len(result):
            return False
        pairs = zip(reversed(value.shape.dims), reversed(result.dims), strict=False)
        return all(dim == 1 or (dim == full and full is not None and _is_known(full)) for dim, full in pairs)

    def is_closed(self) -> bool:
        """Whether the last value is read only outside, and no other value is."""
        *inside, last = self.inner
        return not any(self.escapes(value) for value in inside) and not any(
            node in self.nodes for node in _readers(last)
        )

    def escapes(self, value: ir.Value) -> bool:
        """Whether the value is read outside."""
        return value.is_graph_output() or any(node not in self.nodes for node in _readers(value))


def _is_known(dim: int | ir.SymbolicDim) -> bool:
    return isinstance(dim, int) or dim.value is not None


def _readers(value: ir.Value) -> list[ir.Node]:
    return [use.node for use in value.uses()]


def _replace(root: ir.Node, nodes: list[ir.Node]) -> None:
    last = nodes[-1]
    graph = graph_of(last)
    result = root.outputs[0]
    body, operands = body_of(nodes, "epilogue", rank=len(result.shape or ()), result=result)
    new = Rewriter(graph)
    attributes = dict[str, Any](root.attributes)
    inputs = (*root.inputs, *operands)
    fused = new.op(
        root.op_type,
        *inputs,
        domain=PLAN_DOMAIN,
        epilogue=body,
        operands=len(root.inputs),
        **attributes,
    )
    origin.inherit(new.nodes, [root, *nodes])
    insert(graph, last, new)
    replace_uses(last.outputs[0], fused)
    graph.remove([*reversed(nodes), root], safe=True)
