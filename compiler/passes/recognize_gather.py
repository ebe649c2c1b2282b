"""Replaces a GatherND of whole slices with Gather; PyTorch exports indexing with tensors as GatherND."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank
from compiler.ir.views.gather import GatherNdView
from compiler.ir.views.reshape import SqueezeView
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.permutation import permutation_of, typed
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["recognize_gather"]

_Indices = list[np.ndarray | ir.Value]
"""The indices of each axis of the source, along separate axes of the grid."""


class GatherNDToGather(FindingRule[_Indices]):
    """`GatherND(x, grid)` → `Gather(Gather(x, b, axis 1), a, axis 0)`, where `grid[i, j] = (a[i], b[j])`.

    `i` and `j` may stand for several axes. If the entries of the grid have one number, there is one Gather. If `x` is
    transposed, the transpose moves after the Gather, where it may meet its inverse.
    """

    pattern = Op("GatherND", Var("x"), Var("grid"), name="gather")
    allow_shared_intermediates = True
    looks_above = 1  # a transpose of the source, an Unsqueeze of the indices

    def check(self, match: Match) -> _Indices | str:
        """The ranks are known, there are no batches, and the indices of each axis depend on separate axes."""
        view = GatherNdView[ir.Value].of(match.root, complete=True)
        if view is None or view.batch_axes:
            return "it has batches"
        size = rank(match["x"])
        if size is None or rank(match["grid"]) is None:
            return "the ranks are not known"
        places = _indices(match["grid"])
        return places if places and len(places) <= size else "it does not take whole slices along successive axes"

    def rewrite(self, match: Match, found: _Indices, new: Rewriter) -> ir.Value:
        """The Gathers, last axis first, then a transpose to GatherND's order of axes."""
        source, perm = _source(match["x"])
        values = [part if isinstance(part, ir.Value) else new.constant(part, "indices") for part in found]
        result = source
        # Last axis of the source first, so that new axes do not shift the axes of the other Gathers.
        for axis, value in sorted(zip(perm, values, strict=False), key=lambda pair: -pair[0]):
            shape = _gathered_shape(result.shape, axis, value.shape)
            result = typed(new.op("Gather", result, value, version=13, axis=axis), source.type, shape)
        order = _order(perm, [rank(value) or 0 for value in values])
        return result if order == tuple(range(len(order))) else new.op("Transpose", result, perm=list(order))


def _source(value: ir.Value) -> tuple[ir.Value, tuple[int, ...]]:
    """The value before a transpose, if any, and the permutation."""
    node = value.producer()
    if node is not None and node.op_identifier() == ("", "Transpose", "") and node.inputs[0] is not None:
        perm = permutation_of(node)
        if perm is not None:
            return node.inputs[0], perm
    return value, tuple(range(rank(value) or 0))


def _gathered_shape(shape: ir.Shape | None, axis: int, places: ir.Shape | None) -> ir.Shape | None:
    """The shape after a Gather."""
    return None if shape is None or places is None else ir.Shape([*shape[:axis], *places, *shape[axis + 1 :]])


def _order(perm: tuple[int, ...], ranks: list[int]) -> tuple[int, ...]:
    """The permutation of the Gathers' result to GatherND's axes: first the axes of the indices, then the others."""
    sizes = dict.fromkeys(perm, 1) | dict(zip(perm, ranks, strict=False))
    starts = {axis: sum(sizes[before] for before in range(axis)) for axis in sizes}
    return tuple(starts[axis] + offset for axis in perm for offset in range(sizes[axis]))


def _indices(grid: ir.Value) -> _Indices | None:
    """The indices of each axis of the source, in order; `None` if they are not separable."""
    array = constant_of(grid)
    if array is not None:
        return next(_separate_indices(array), None) if array.ndim > 1 else None
    node = grid.producer()
    view, dims = SqueezeView[ir.Value].of(node), rank(grid) or 0
    if node is None or node.op_type != "Unsqueeze" or view is None or view.x is None:
        return None
    return [view.x] if view.normalized_axes(dims) == [dims - 1] else None


def _separate_indices(grid: np.ndarray) -> Iterator[_Indices]:
    """The ways to separate a grid with entries of one or two numbers into the indices of each axis."""
    if grid.shape[-1] == 1:
        yield [grid[..., 0]]
    if grid.shape[-1] != 2 or grid.size == 0:
        return
    for split in range(1, grid.ndim - 1):
        above, below = grid.shape[:split], grid.shape[split:-1]
        rows = grid[..., 0].reshape(*above, -1)[..., 0]
        columns = grid[..., 1].reshape(-1, *below)[0]
        spread = rows.reshape(*above, *[1] * len(below))
        if (grid[..., 0] == spread).all() and (grid[..., 1] == columns).all():
            yield [rows, columns]


recognize_gather = rules_pass(
    "recognize_gather", [GatherNDToGather()], result="gathers found", requires=frozenset({"shapes"})
)
