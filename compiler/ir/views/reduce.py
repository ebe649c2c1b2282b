"""ReduceSum and the other reductions: the reduced axes, and whether they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir.views.source import Listed, Source, V, View, ints_of

__all__ = ["REDUCTIONS", "ReduceView", "axes_of", "keeps_axes", "moved_in"]

_KINDS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
REDUCTIONS = tuple(f"Reduce{kind}" for kind in _KINDS)
"""The names of all reduction operators."""


@dataclass(frozen=True)
class ReduceView(View[V]):
    """`Reduce…`: the axes are an attribute before version 18 (ReduceSum: 13), and an input in later versions.

    Source: https://onnx.ai/onnx/operators/onnx__ReduceSum.html
    """

    operators = tuple(("", name) for name in REDUCTIONS)

    x: V | None
    axes: Listed[V, int] | None
    keepdims: bool
    keeps_without_axes: bool
    """Whether no axis is reduced, instead of all, if the axes are absent or empty: `noop_with_empty_axes`."""

    @classmethod
    def read(cls, node: Source[V]) -> ReduceView[V]:
        """The view of a reduction."""
        axes, keeps = ints_of(node, "axes", 1, moved_in(node.op_type)), node.flag("noop_with_empty_axes", False)
        return cls(node.optional(0), axes, node.flag("keepdims", True), keeps)

    def known_axes(self, rank: int | None) -> tuple[int, ...] | None:
        """The reduced axes, negative and sorted; `None` if unknown, and if no axis is reduced."""
        axes = () if self.axes is None else self.axes.known
        if axes is None:
            return None
        if not axes and not self.keeps_without_axes:
            axes = tuple(range(rank)) if rank is not None else ()
        if any(axis >= 0 for axis in axes) and rank is None:
            return None
        return tuple(sorted(axis if axis < 0 else axis - (rank or 0) for axis in axes)) or None

    def with_axes(self, axes: Sequence[int]) -> tuple[list[np.ndarray], dict[str, list[int]]]:
        """The inputs after `x` and the attributes with which the reduction reduces these axes instead.

        Both are empty if the reduction states no axes: then it reduces all of them.
        """
        if self.axes is None:
            return [], {}
        if self.axes.is_attribute:
            return [], {"axes": list(axes)}
        return [np.array(axes, np.int64)], {}


def moved_in(op_type: str) -> int:
    """The version that made the axes an input and added `noop_with_empty_axes`."""
    return 13 if op_type == "ReduceSum" else 18


def axes_of(node: ir.Node) -> tuple[int, ...] | None:
    """The axes that a Reduce* node reduces, negative and sorted; `None` if unknown."""
    view = ReduceView[ir.Value].of(node)
    shape = None if view is None or view.x is None else view.x.shape
    return None if view is None else view.known_axes(None if shape is None else len(shape))


def keeps_axes(node: ir.Node) -> bool:
    """Whether the result keeps the reduced axes, with size 1."""
    view = ReduceView[ir.Value].of(node)
    return view is not None and view.keepdims
