"""Reshape, Flatten, Squeeze, Unsqueeze: other dimensions for the same elements."""

from __future__ import annotations

from compiler.ir.views.reshape import FlattenView, ReshapeView, SqueezeView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Reshape", newest=25)
def reshape(node: Node, build: PlanBuilder) -> Value:
    """`Reshape`; a 0 in the shape copies the input's dimension, unless `allowzero` is set."""
    return build(ops.Reshape(allow_zero=ReshapeView.read(node).allow_zero), node.input(0), node.input(1))


@lowers("Flatten", newest=25)
def flatten(node: Node, build: PlanBuilder) -> Value:
    """`Flatten`."""
    return build(ops.Flatten(axis=FlattenView.read(node).axis), node.input(0))


@lowers("Squeeze", newest=25)
def squeeze(node: Node, build: PlanBuilder) -> Value:
    """`Squeeze`; without axes, it drops every dimension of size 1."""
    axes, computed = _axes(node)
    return build(ops.Squeeze(axes=axes), node.input(0), computed)


@lowers("Unsqueeze", newest=25)
def unsqueeze(node: Node, build: PlanBuilder) -> Value:
    """`Unsqueeze`."""
    axes, computed = _axes(node)
    return build(ops.Unsqueeze(axes=axes), node.input(0), computed)


def _axes(node: Node) -> tuple[list[int] | None, Value | None]:
    """The constant axes, or else the value that holds the axes at run time."""
    axes = SqueezeView.read(node).axes
    if axes is None or axes.known is None:
        return None, None if axes is None else axes.value
    return list(axes.known), None
