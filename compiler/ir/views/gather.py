"""Gather, GatherElements, GatherND: the axis of the indices, or the number of batch axes."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View, resolved

__all__ = ["GatherNdView", "GatherView"]


@dataclass(frozen=True)
class GatherView(View[V]):
    """`Gather` and `GatherElements`: elements of `x` at the `indices` along one axis.

    Sources: https://onnx.ai/onnx/operators/onnx__Gather.html, https://onnx.ai/onnx/operators/onnx__GatherElements.html
    """

    operators = (("", "Gather"), ("", "GatherElements"))

    x: V | None
    indices: V | None
    axis: int

    @classmethod
    def read(cls, node: Source[V]) -> GatherView[V]:
        """The view of a Gather."""
        return cls(node.optional(0), node.optional(1), node.int("axis", 0))

    def normalized_axis(self, rank: int) -> int | None:
        """The axis as a nonnegative number; `None` if a tensor of this rank does not have the axis."""
        return resolved(self.axis, rank)


@dataclass(frozen=True)
class GatherNdView(View[V]):
    """`GatherND`: the elements or slices of `x` whose indices are the last axis of `indices`.

    Source: https://onnx.ai/onnx/operators/onnx__GatherND.html
    """

    operators = (("", "GatherND"),)

    x: V | None
    indices: V | None
    batch_axes: int
    """The number of first axes that `x` and `indices` have in common."""

    @classmethod
    def read(cls, node: Source[V]) -> GatherNdView[V]:
        """The view of a GatherND."""
        return cls(node.optional(0), node.optional(1), node.int("batch_dims", 0))
