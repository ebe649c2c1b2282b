"""The graph inside a fused node, with copies of the nodes that the fused node replaces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import constant_of

__all__ = ["MOST_NODES", "body_of", "is_number"]

MOST_NODES = 16
"""The largest number of nodes in a body, because a program has a limited number of slots."""


def body_of(
    nodes: Sequence[ir.Node], name: str, *, rank: int, result: ir.Value | None = None
) -> tuple[ir.Graph, list[ir.Value]]:
    """The nodes as a graph that returns the last node's result, and the outer values for its inputs.

    `result`, if given, is the graph's first input, and is not among these values. Constant numbers of rank up to
    `rank`, the largest rank of the graph's other inputs, are initializers of the graph.
    """
    body = _Body(result, rank)
    for node in nodes:
        body.copy(node)
    first = [] if result is None else [body.inner[result]]
    last = body.inner[nodes[-1].outputs[0]]
    graph = ir.Graph(
        [*first, *body.operands.values()],
        [last],
        nodes=body.nodes,
        initializers=list(body.numbers.values()),
        name=name,
    )
    return graph, list(body.operands)


def is_number(value: ir.Value, rank: int) -> bool:
    """Whether the value is a constant whose elements are one finite number, and its rank is at most `rank`."""
    if value.shape is not None and any(dim != 1 for dim in value.shape.dims):
        return False
    array = constant_of(value)
    if array is None or array.size != 1 or array.ndim > rank:
        return False
    return array.dtype.kind == "f" and bool(np.isfinite(array).all())


class _Body:
    """Copies of nodes and of the values that they read, with maps from the outer values to the copies."""

    def __init__(self, result: ir.Value | None, rank: int) -> None:
        self.rank = rank
        self.inner: dict[ir.Value, ir.Value] = {} if result is None else {result: _like(result, "result")}
        self.operands: dict[ir.Value, ir.Value] = {}
        self.numbers: dict[ir.Value, ir.Value] = {}
        self.nodes: list[ir.Node] = []

    def copy(self, node: ir.Node) -> None:
        """Appends a copy of the node."""
        inputs = [None if value is None else self.inside(value) for value in node.inputs]
        copy = ir.Node("", node.op_type, inputs, list(node.attributes.values()), num_outputs=1, version=node.version)
        origin.inherit([copy], [node])
        outer, inner = node.outputs[0], copy.outputs[0]
        inner.type, inner.shape, inner.name = outer.type, outer.shape, f"value{len(self.nodes)}"
        self.inner[outer] = inner
        self.nodes.append(copy)

    def inside(self, value: ir.Value) -> ir.Value:
        """The copy of an outer value in the body."""
        if value in self.inner:
            return self.inner[value]
        number = constant_of(value) if is_number(value, self.rank) else None
        if number is None:
            return self.operands.setdefault(value, _like(value, f"operand{len(self.operands)}"))
        if value not in self.numbers:
            self.numbers[value] = _like(value, f"number{len(self.numbers)}")
            self.numbers[value].const_value = ir.tensor(number)
        return self.numbers[value]


def _like(value: ir.Value, name: str) -> ir.Value:
    return ir.Value(name=name, type=value.type, shape=value.shape)
