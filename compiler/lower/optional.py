"""Optional, OptionalHasElement, OptionalGetElement: values that may be absent."""

from __future__ import annotations

import onnx_ir as ir

from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops
from compiler.plan.types import type_of


@lowers("Optional", newest=28)
def optional(node: Node, build: PlanBuilder) -> Value:
    """`Optional`: a value, or an absent value of a type."""
    declared = node.type_attr("type")
    try:
        kind = None if declared is None else type_of(ir.Value(type=declared.type, shape=declared.shape))
    except TypeError as error:
        node.refuse("CC0202", f"Optional: {error}")
    return build(ops.Optional(type=kind), node.optional(0))


@lowers("OptionalHasElement", newest=28)
def optional_has_element(node: Node, build: PlanBuilder) -> Value:
    """`OptionalHasElement`."""
    return build(ops.OptionalHasElement(), node.optional(0))


@lowers("OptionalGetElement", newest=28)
def optional_get_element(node: Node, build: PlanBuilder) -> Value:
    """`OptionalGetElement`."""
    return build(ops.OptionalGetElement(), node.input(0))
