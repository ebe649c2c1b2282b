"""Reshape, Flatten, Squeeze, Unsqueeze: other dimensions for the same elements."""

from __future__ import annotations

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Reshape", newest=25)
def reshape(node: Node, build: PlanBuilder) -> Value:
    """`Reshape`: a 0 in the shape copies the input's dimension, unless `allowzero`."""
    return build(ops.Reshape(allow_zero=node.flag("allowzero", False)), node.input(0), node.input(1))


@lowers("Flatten", newest=25)
def flatten(node: Node, build: PlanBuilder) -> Value:
    """`Flatten`."""
    return build(ops.Flatten(axis=node.int("axis", 1)), node.input(0))


@lowers("Squeeze", newest=25)
def squeeze(node: Node, build: PlanBuilder) -> Value:
    """`Squeeze`: axes from the attribute (before 13) or the input; none means every dimension of size 1."""
    axes, computed = _axes(node)
    return build(ops.Squeeze(axes=axes), node.input(0), computed)


@lowers("Unsqueeze", newest=25)
def unsqueeze(node: Node, build: PlanBuilder) -> Value:
    """`Unsqueeze`: axes from the attribute (before 13) or the input."""
    axes, computed = _axes(node)
    return build(ops.Unsqueeze(axes=axes), node.input(0), computed)


def _axes(node: Node) -> tuple[list[int] | None, Value | None]:
    """The axes that are known now, or else the value that will hold them."""
    if node.version < 13:
        return node.ints("axes", None), None
    known = node.constant(1)
    if known is None:
        return None, node.optional(1)
    return [int(axis) for axis in known.reshape(-1)], None
