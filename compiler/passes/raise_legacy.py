"""Converts operators of opsets 1 to 6 to the form of opset 7.

Before opset 7, an attribute enabled broadcasting, another gave the axis at which the second operand starts, PRelu had
one slope per channel, and normalization and dropout had an attribute for inference. The lowering of each operator
handles or refuses the other differences.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.errors import Diagnostic
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import graph_of, nodes_of, opset_of, rank
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.rule import Rewriter, insert

__all__ = ["raise_legacy"]

_MODERN = 7
_DROPPED = ("consumed_inputs", "broadcast", "is_test")
"""Attributes that do not change the result of inference once the operands' shapes broadcast."""


def _raise_legacy(model: ir.Model, report: PassReport) -> None:
    """Converts operators of opsets before 7 to the form of opset 7."""
    opset = model.opset_imports.get("", _MODERN)
    for node in list(nodes_of(model)):
        if opset_of(node, opset) >= _MODERN or node.domain != "":
            continue
        modern = onnx_schema.since_version("", node.op_type, _MODERN)
        if modern != _MODERN and not set(_DROPPED) & set(node.attributes):
            continue
        problem = _align(node)
        if problem is not None:
            report.refused.append(Diagnostic("CC0202", f"{node.op_type}: {problem}", origin.of(node)))
        for name in (*_DROPPED, "spatial"):
            node.attributes.pop(name, None)
        node.version = _MODERN
        report.fired.append(Fired("raise", origin.of(node)))


def _align(node: ir.Node) -> str | None:
    """Reshapes the second operand to broadcast as the attributes require; returns the reason if it cannot."""
    if "spatial" in node.attributes and node.attributes["spatial"].as_int() != 1:
        return "statistics for every pixel are not supported"
    is_prelu = node.op_type == "PRelu"
    if not is_prelu and "broadcast" not in node.attributes:
        return None
    if not is_prelu and "axis" not in node.attributes:
        return None
    first, second = node.inputs[0], node.inputs[1]
    one, other = rank(first), rank(second)
    if one is None or other is None or second is None:
        return "broadcasting along an axis needs the ranks of both operands"
    axis = 1 if is_prelu else node.attributes["axis"].as_int()
    if not is_prelu and not -one <= axis <= max(one - 1, 0):
        return f"axis {axis} is outside the {one} axes of the first operand"
    axis += one if axis < 0 else 0
    node.attributes.pop("axis", None)
    behind = max(0, one - axis - other)
    if behind:
        _append_ones(node, second, behind)
    return None


def _append_ones(node: ir.Node, value: ir.Value, count: int) -> None:
    """Appends `count` dimensions of size 1 to input 1."""
    graph = graph_of(node)
    new = Rewriter(graph)
    target = new.constant(np.array([0] * (rank(value) or 0) + [1] * count, np.int64), "broadcast")
    aligned = new.op("Reshape", value, target, version=_MODERN)
    aligned.type = value.type
    if value.shape is not None:
        aligned.shape = ir.Shape([*value.shape.dims, *[1] * count])
    origin.inherit(new.nodes, [node])
    insert(graph, node, new)
    node.replace_input_with(1, aligned)


raise_legacy = Pass("raise_legacy", _raise_legacy, result="nodes upgraded", requires=frozenset({"shapes"}), needed=True)
