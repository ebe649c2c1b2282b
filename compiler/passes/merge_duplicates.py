"""Merges identical nodes, and identical small constants."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import onnx_ir as ir

from compiler.custom import registered
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import array_of, graph_attributes, opset_of
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.rule import replace_uses

__all__ = ["merge_duplicates"]

_SMALL = 1024
"""The largest size, in bytes, of initializers to merge. Once shape constants are merged, their readers can merge."""


def _merge_duplicates(model: ir.Model, report: PassReport) -> None:
    """Keeps one of several nodes with the same operator, inputs and attributes, and one of equal small constants."""
    _Merge(model.opset_imports, report).graph(model.graph, {})


class _Merge:
    def __init__(self, opsets: dict[str, int], report: PassReport) -> None:
        self.opsets, self.report = opsets, report

    def graph(self, graph: ir.Graph, outer: dict[Hashable, ir.Node]) -> None:
        self.constants(graph)
        seen = dict(outer)
        for node in graph:
            key = self.key(node)
            same = seen.get(key) if key is not None else None
            if same is not None and len(same.outputs) == len(node.outputs):
                self.report.fired.append(Fired("merge", origin.of(node)))
                _replace(node, same)
                continue
            for nested in graph_attributes(node):
                self.graph(nested, seen)
            if key is not None:
                seen[key] = node

    def constants(self, graph: ir.Graph) -> None:
        seen: dict[Hashable, ir.Value] = {}
        for value in list(graph.initializers.values()):
            if value.const_value is None or value.const_value.nbytes > _SMALL or value.is_graph_output():
                continue
            same = seen.setdefault(_tensor_key(value.const_value), value)
            if same is not value and value.name is not None and value.uses():
                value.replace_all_uses_with(same)
                del graph.initializers[value.name]

    def key(self, node: ir.Node) -> Hashable:
        """A key that interchangeable nodes share; `None` for a node that no other node can replace."""
        opset = opset_of(node, self.opsets.get(node.domain, 1))
        if not onnx_schema.is_deterministic(node.domain, node.op_type, opset):
            return None
        if registered(node.domain, node.op_type) is not None:
            return None  # its function may return random numbers
        attributes = []
        for name, attribute in sorted(node.attributes.items()):
            if attribute.type in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
                return None
            attributes.append((name, _attribute_key(attribute)))
        return (node.op_identifier(), opset, tuple(node.inputs), tuple(attributes))


def _replace(node: ir.Node, same: ir.Node) -> None:
    for old, new in zip(node.outputs, same.outputs, strict=True):
        replace_uses(old, new)
    if node.graph is not None:
        origin.inherit([same], [same, node])
        node.graph.remove(node, safe=True)


def _attribute_key(attribute: ir.Attr) -> Hashable:
    if attribute.type == ir.AttributeType.TENSOR:
        return _tensor_key(attribute.as_tensor())
    value = attribute.value
    if attribute.type in (ir.AttributeType.INT, ir.AttributeType.STRING):
        return (attribute.type, value)
    if attribute.type in (ir.AttributeType.INTS, ir.AttributeType.STRINGS):
        return (attribute.type, tuple(value))
    # A repr distinguishes 0.0 from -0.0, finds NaN equal to itself, and describes types completely.
    return (attribute.type, repr(value))


def _tensor_key(tensor: ir.TensorProtocol) -> Hashable:
    array = array_of(tensor)
    if array.dtype == object:
        return (tensor.dtype, array.shape, tuple(array.ravel().tolist()))
    return (tensor.dtype, array.shape, np.ascontiguousarray(array).tobytes())


merge_duplicates = Pass(
    "merge_duplicates", _merge_duplicates, result="duplicates merged", requires=frozenset({"sorted"})
)
