"""Fuses consecutive elementwise functions of float32 into one step, which computes them element by element.

The nodes become one node `candle.plan.Elementwise` with the graph `body`, which has the inputs of the node. Shapes may
be unknown: a value that broadcasts to a node's result also broadcasts to the results of the nodes after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import PLAN_DOMAIN, constant_of, graphs_of, rank, same_shape
from compiler.rewrite.fused_body import MOST_NODES, body_of, is_number
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert, replace_uses

__all__ = ["fuse_elementwise"]

_MOST_INPUTS = 16
"""The limit of inputs. More inputs cost more than the fusion saves."""

_ANY_RANK = 64

Question = Callable[[ir.Node], bool]


def fuse_elementwise(is_elementwise: Question) -> Pass:
    """The pass for the nodes for which `is_elementwise` is true."""

    def fuse(model: ir.Model, report: PassReport) -> None:
        """Fuses elementwise functions of float32 into single steps."""
        for graph in graphs_of(model.graph):
            order = {node: index for index, node in enumerate(graph)}
            for node in reversed(order):
                if node.graph is graph and _can_end(node, is_elementwise):
                    _fuse(_Region(node, order, is_elementwise), report)

    return Pass("fuse_elementwise", fuse, result="steps fused", requires=frozenset({"shapes", "sorted"}))


def _can_end(node: ir.Node, is_elementwise: Question) -> bool:
    """Whether a region can end with the node: its result is float32."""
    return is_elementwise(node) and node.outputs[0].dtype == ir.DataType.FLOAT and _computes_floats(node)


def _computes_floats(node: ir.Node) -> bool:
    """Whether the node's tensors are float32 or boolean."""
    allowed = (ir.DataType.FLOAT, ir.DataType.BOOL)
    return all(value is None or value.dtype in allowed for value in (*node.inputs, *node.outputs))


class _Region:
    """A last node and nodes before it whose results no node outside reads."""

    def __init__(self, last: ir.Node, order: dict[ir.Node, int], is_elementwise: Question) -> None:
        self.order, self.is_elementwise, self.last = order, is_elementwise, last
        self.nodes = {last}

    def grow(self) -> list[ir.Node]:
        """The largest set of nodes, in order; an empty list if fusing them saves nothing."""
        while len(self.nodes) < MOST_NODES and (node := self.next()):
            self.nodes.add(node)
        self.drop_boolean_readers()
        is_small = len(self.nodes) < 2 or len(self.inputs()) > _MOST_INPUTS
        return [] if is_small else sorted(self.nodes, key=self.order.__getitem__)

    def next(self) -> ir.Node | None:
        """The last node in the graph's order that can join."""
        joining = [node for node in self.above() if self.why_not(node) is None]
        return max(joining, key=self.order.__getitem__, default=None)

    def above(self) -> list[ir.Node]:
        """The elementwise nodes whose results the region reads, in order."""
        nodes = {node for value in self.inputs() if (node := value.producer()) is not None and node in self.order}
        return sorted((node for node in nodes if self.is_elementwise(node)), key=self.order.__getitem__)

    def why_not(self, node: ir.Node) -> str | None:
        """The reason why the node cannot join; `None` if it can."""
        value = node.outputs[0]
        if not _computes_floats(node):
            return f"{value.name!r} is not computed from float32"
        if value.is_graph_output() or any(use.node not in self.nodes for use in value.uses()):
            return f"{value.name!r} is needed elsewhere too"
        # A smaller result would be computed again for each element that it broadcasts to.
        if not same_shape(value, self.last.outputs[0]) and not _is_unknown(value):
            return f"{value.name!r} is smaller than the result"
        return None

    def inputs(self) -> list[ir.Value]:
        """The values that the nodes read from outside, except single numbers."""
        inner = {node.outputs[0] for node in self.nodes}
        ordered = sorted(self.nodes, key=self.order.__getitem__)
        given = [value for node in ordered for value in node.inputs if value is not None and value not in inner]
        most = _rank_of(given)
        return [value for value in dict.fromkeys(given) if not is_number(value, most)]

    def drop_boolean_readers(self) -> None:
        """Removes nodes that read booleans from outside, and the nodes that only these need."""
        while readers := self.boolean_readers():
            self.nodes -= readers
            if self.last not in self.nodes:
                self.nodes = set()
            self.nodes = {node for node in self.nodes if self.reaches_last(node)}

    def boolean_readers(self) -> set[ir.Node]:
        """The nodes that read booleans from outside."""
        booleans = [value for value in self.inputs() if value.dtype != ir.DataType.FLOAT]
        return {node for node in self.nodes if any(value in node.inputs for value in booleans)}

    def reaches_last(self, node: ir.Node) -> bool:
        return node is self.last or any(
            use.node in self.nodes and self.reaches_last(use.node) for use in node.outputs[0].uses()
        )


def _rank_of(values: Iterable[ir.Value]) -> int:
    """The largest known rank of the values, without single numbers."""
    return max((rank(value) or 0 for value in values if not is_number(value, _ANY_RANK)), default=0)


def _is_unknown(value: ir.Value) -> bool:
    return value.shape is None or any(not isinstance(dim, int) and dim.value is None for dim in value.shape.dims)


def _fuse(region: _Region, report: PassReport) -> None:
    nodes = region.grow()
    for node in region.above():
        if reason := region.why_not(node):
            report.missed.append(Missed("fuse", origin.of(node), reason))
    last = region.last
    if not nodes or last.graph is None:
        return
    given = region.inputs()
    if not given or all(constant_of(value) is not None for value in given):
        return
    body, inputs = body_of(nodes, "body", rank=_rank_of(given))
    new = Rewriter(last.graph)
    fused = new.op("Elementwise", *inputs, domain=PLAN_DOMAIN, body=body)
    origin.inherit(new.nodes, nodes)
    report.fired.append(Fired(f"fuse {' + '.join(node.op_type for node in nodes)}", origin.of(last)))
    insert(last.graph, last, new)
    replace_uses(last.outputs[0], fused)
    last.graph.remove(list(reversed(nodes)), safe=True)
