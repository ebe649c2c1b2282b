"""Sequences: lists of tensors of one type."""

from __future__ import annotations

from compiler.ir.views.split import SplitToSequenceView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("SequenceConstruct", newest=11)
def sequence_construct(node: Node, build: PlanBuilder) -> Value:
    """`SequenceConstruct`."""
    return build(ops.SequenceConstruct(), *(node.input(index) for index in range(len(node.inputs))))


@lowers("SequenceEmpty", newest=11)
def sequence_empty(node: Node, build: PlanBuilder) -> Value:
    """`SequenceEmpty`; the default dtype is float32."""
    return build(ops.SequenceEmpty(dtype=node.dtype_attr("dtype", "float32")))  # type: ignore[arg-type]


@lowers("SequenceAt", newest=11)
def sequence_at(node: Node, build: PlanBuilder) -> Value:
    """`SequenceAt`."""
    return build(ops.SequenceAt(), node.input(0), node.input(1))


@lowers("SequenceInsert", newest=11)
def sequence_insert(node: Node, build: PlanBuilder) -> Value:
    """`SequenceInsert`."""
    return build(ops.SequenceInsert(), node.input(0), node.input(1), node.optional(2))


@lowers("SequenceErase", newest=11)
def sequence_erase(node: Node, build: PlanBuilder) -> Value:
    """`SequenceErase`."""
    return build(ops.SequenceErase(), node.input(0), node.optional(1))


@lowers("SequenceLength", newest=11)
def sequence_length(node: Node, build: PlanBuilder) -> Value:
    """`SequenceLength`."""
    return build(ops.SequenceLength(), node.input(0))


@lowers("SplitToSequence", newest=24)
def split_to_sequence(node: Node, build: PlanBuilder) -> Value:
    """`SplitToSequence`."""
    view = SplitToSequenceView.read(node)
    return build(ops.SplitToSequence(axis=view.axis, keep_axis=view.keeps_axis), node.input(0), view.size)


@lowers("ConcatFromSequence", newest=11)
def concat_from_sequence(node: Node, build: PlanBuilder) -> Value:
    """`ConcatFromSequence`."""
    op = ops.ConcatFromSequence(axis=node.int("axis"), new_axis=node.flag("new_axis", False))
    return build(op, node.input(0))
