"""Softmax, LogSoftmax, Hardmax."""

from __future__ import annotations

from compiler.ir.views.softmax import SoftmaxView
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops


@lowers("Softmax", newest=13)
def softmax(node: Node, build: PlanBuilder) -> Value:
    """`Softmax`."""
    return _normalized(node, build, "Softmax")


@lowers("LogSoftmax", newest=13)
def log_softmax(node: Node, build: PlanBuilder) -> Value:
    """`LogSoftmax`."""
    return _normalized(node, build, "LogSoftmax")


remark("LogSoftmax", "A row with NaN or infinity becomes NaN; in float64, onnxruntime gives numbers.")


@lowers("Hardmax", newest=13)
def hardmax(node: Node, build: PlanBuilder) -> Value:
    """`Hardmax`."""
    return _normalized(node, build, "Hardmax")


remark(
    "Hardmax",
    "The first of the largest elements becomes 1. A NaN in the first place of a row becomes 1. The op ignores other "
    "NaNs. In onnxruntime, a row that begins with a NaN has no 1.",
)


def _normalized(node: Node, build: PlanBuilder, function: ops.SoftmaxFunction) -> Value:
    """The op along one axis. Before version 13, the axis includes all axes after it, unless it is the last axis."""
    x = node.input(0)
    axis = SoftmaxView.read(node).axis(node.version)
    is_last = axis == -1 or (x.rank is not None and axis == x.rank - 1)
    coerce = node.version < 13 and not is_last
    return build(ops.Softmax(function=function, axis=-1 if is_last else axis, coerce_2d=coerce), x)
