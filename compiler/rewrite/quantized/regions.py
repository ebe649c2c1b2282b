"""The operators around quantized convolutions that can compute on codes too, without floats in between."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import onnx_ir as ir

from compiler.ir import onnx_schema
from compiler.ir.graph import sole_user
from compiler.rewrite.quantized.elementwise import is_function

__all__ = ["Region", "moves"]

_PAIRS = ("Add", "Mul")
_LIMITS = ("Relu", "Clip")


@dataclass
class Region:
    """Nodes that compute on codes, and the values that become codes."""

    convolutions: Collection[ir.Node]
    others: set[ir.Node] = field(default_factory=set)
    values: list[ir.Value] = field(default_factory=list)
    """The values in the order of the graph."""

    @staticmethod
    def around(graph: ir.Graph, convolutions: Collection[ir.Node]) -> Region:
        """The region of some convolutions in a sorted graph.

        Another node is in it if its inputs become codes, and if a node of the region reads its result.
        """
        region = Region(set(convolutions))
        available = {value for node in convolutions for value in (node.inputs[0], node.outputs[0])}
        candidates = list[ir.Node]()
        for node in graph:
            if node not in region.convolutions and all(each in available for each in _sources(node) or [None]):
                candidates.append(node)
                available.add(node.outputs[0])
        for node in reversed(candidates):
            if any(
                use.node in region.others or (use.idx == 0 and use.node in region.convolutions)
                for use in node.outputs[0].uses()
            ):
                region.others.add(node)
        region.values = region._find_values(graph)
        return region

    def __contains__(self, node: ir.Node | None) -> bool:
        return node in self.convolutions or node in self.others

    def reads(self, node: ir.Node) -> list[ir.Value]:
        """The inputs that the node of the region reads as codes."""
        return [each for each in (node.inputs[:1] if node in self.convolutions else _sources(node)) if each is not None]

    def _find_values(self, graph: ir.Graph) -> list[ir.Value]:
        read = {value: None for node in graph if node in self for value in self.reads(node)}
        absorbed = {value for value in read if (user := sole_user(value)) in self.others and self._limits(value, user)}
        return [value for value in read if value not in absorbed and not self._is_inside(value, absorbed)]

    def _limits(self, value: ir.Value, user: ir.Node | None) -> bool:
        """Whether the user is a Relu or Clip that limits the codes of the operator that computes the value."""
        node = value.producer()
        if node is None or user is None or user.op_type not in _LIMITS or node not in self:
            return False
        return node in self.convolutions or node.op_type in _PAIRS

    def _is_inside(self, value: ir.Value, absorbed: Collection[ir.Value]) -> bool:
        """Whether the value is between two functions, which become one table."""
        node, user = value.producer(), sole_user(value)
        if node is None or user is None or node not in self.others or user not in self.others:
            return False
        return is_function(node) and is_function(user) and node.inputs[0] not in absorbed


def _sources(node: ir.Node) -> list[ir.Value | None]:
    """The inputs that a node reads as codes if it computes on codes; empty if it cannot."""
    result = node.outputs[0] if len(node.outputs) == 1 else None
    if node.domain or result is None or result.dtype != ir.DataType.FLOAT:
        return []
    if is_function(node) or moves(node):
        return list(node.inputs[:1])
    if node.op_type == "Concat" or (node.op_type in _PAIRS and len(node.inputs) == 2):
        return list(node.inputs)
    if node.op_type == "GlobalAveragePool":
        return list(node.inputs[:1])
    return []


def moves(node: ir.Node) -> bool:
    """Whether the node only moves elements of its first input."""
    return node.domain == "" and node.op_type in onnx_schema.MOVES and node.op_type != "Concat"
