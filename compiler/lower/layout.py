"""Transpose, DepthToSpace, SpaceToDepth, ReverseSequence: the same elements in another order."""

from __future__ import annotations

from compiler.ir.views.transpose import TransposeView
from compiler.lower.node import Node, lowers
from compiler.plan import PlanBuilder, Value, ops


@lowers("Transpose", newest=25)
def transpose(node: Node, build: PlanBuilder) -> Value:
    """`Transpose`."""
    view = TransposeView.read(node)
    permutation = None if view.perm is None else list(view.perm)
    if permutation is not None and view.order(len(permutation)) is None:
        node.refuse("CC0202", f"perm {permutation} is not a permutation of the axes")
    return build(ops.Transpose(permutation=permutation), node.input(0))


@lowers("DepthToSpace", newest=28)
def depth_to_space(node: Node, build: PlanBuilder) -> Value:
    """`DepthToSpace`."""
    return build(ops.DepthToSpace(block_size=_block_size(node), channels_first=_channels_first(node)), node.input(0))


@lowers("SpaceToDepth", newest=28)
def space_to_depth(node: Node, build: PlanBuilder) -> Value:
    """`SpaceToDepth`."""
    return build(ops.SpaceToDepth(block_size=_block_size(node), channels_first=_channels_first(node)), node.input(0))


@lowers("ReverseSequence", newest=28)
def reverse_sequence(node: Node, build: PlanBuilder) -> Value:
    """`ReverseSequence`; the batch and time axes are the first two axes."""
    axes = (node.int("time_axis", 0), node.int("batch_axis", 1))
    if sorted(axes) != [0, 1]:
        node.refuse("CC0202", f"ReverseSequence has time and batch axes {axes}, which are not 0 and 1")
    return build(ops.ReverseSequence(time_first=axes[0] == 0), node.input(0), node.input(1))


def _block_size(node: Node) -> int:
    size = node.int("blocksize")
    if size < 1:
        node.refuse("CC0202", f"blocksize {size} is not positive")
    return size


def _channels_first(node: Node) -> bool:
    mode = node.string("mode", "DCR")
    if mode not in ("DCR", "CRD"):
        node.refuse("CC0202", f"{node.op_type} has no mode {mode!r}")
    return mode == "CRD"
