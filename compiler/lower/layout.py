"""Transpose, DepthToSpace, SpaceToDepth, ReverseSequence: the same elements in another order."""

from __future__ import annotations

from compiler.ir.views.blocks import BlocksView
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
    size, channels_first = _blocks(node)
    return build(ops.DepthToSpace(block_size=size, channels_first=channels_first), node.input(0))


@lowers("SpaceToDepth", newest=28)
def space_to_depth(node: Node, build: PlanBuilder) -> Value:
    """`SpaceToDepth`."""
    size, channels_first = _blocks(node)
    return build(ops.SpaceToDepth(block_size=size, channels_first=channels_first), node.input(0))


@lowers("ReverseSequence", newest=28)
def reverse_sequence(node: Node, build: PlanBuilder) -> Value:
    """`ReverseSequence`; the batch and time axes are the first two axes."""
    axes = (node.int("time_axis", 0), node.int("batch_axis", 1))
    if sorted(axes) != [0, 1]:
        node.refuse("CC0202", f"ReverseSequence has time and batch axes {axes}, which are not 0 and 1")
    return build(ops.ReverseSequence(time_first=axes[0] == 0), node.input(0), node.input(1))


def _blocks(node: Node) -> tuple[int, bool]:
    """The size of the blocks, and whether the channel comes before the place in the block."""
    view = BlocksView.read(node)
    if view.size < 1:
        node.refuse("CC0202", f"blocksize {view.size} is not positive")
    if view.mode not in ("DCR", "CRD"):
        node.refuse("CC0202", f"{node.op_type} has no mode {view.mode!r}")
    return view.size, view.mode == "CRD"
