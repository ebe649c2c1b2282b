"""Reshape, Flatten, Squeeze, Unsqueeze: other dimensions for the same elements."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Listed, Source, V, View, ints_of, resolved

__all__ = ["FlattenView", "ReshapeView", "SqueezeView"]


@dataclass(frozen=True)
class ReshapeView(View[V]):
    """`Reshape`: a 0 in the shape copies the input's dimension, unless `allow_zero`; -1 stands for the remaining size.

    Source: https://onnx.ai/onnx/operators/onnx__Reshape.html
    """

    operators = (("", "Reshape"),)

    x: V | None
    shape: Listed[V, int] | None
    allow_zero: bool

    @classmethod
    def read(cls, node: Source[V]) -> ReshapeView[V]:
        """The view of a Reshape; `raise_first_versions` makes the attribute of version 1 an input."""
        return cls(node.optional(0), ints_of(node, "shape", 1, 5), node.flag("allowzero", False))


@dataclass(frozen=True)
class FlattenView(View[V]):
    """`Flatten`: a matrix, whose rows are the axes before `axis`.

    Source: https://onnx.ai/onnx/operators/onnx__Flatten.html
    """

    operators = (("", "Flatten"),)

    x: V | None
    axis: int

    @classmethod
    def read(cls, node: Source[V]) -> FlattenView[V]:
        """The view of a Flatten."""
        return cls(node.optional(0), node.int("axis", 1))


@dataclass(frozen=True)
class SqueezeView(View[V]):
    """`Squeeze` and `Unsqueeze`: the axes are an attribute before version 13, and an input from version 13 on.

    Without axes, Squeeze drops every dimension of size 1.

    Sources: https://onnx.ai/onnx/operators/onnx__Squeeze.html, https://onnx.ai/onnx/operators/onnx__Unsqueeze.html
    """

    operators = (("", "Squeeze"), ("", "Unsqueeze"))

    x: V | None
    axes: Listed[V, int] | None

    @classmethod
    def read(cls, node: Source[V]) -> SqueezeView[V]:
        """The view of a Squeeze or an Unsqueeze."""
        return cls(node.optional(0), ints_of(node, "axes", 1, 13))

    def normalized_axes(self, rank: int) -> list[int] | None:
        """The axes as nonnegative numbers, for the larger shape, which has this rank; `None` if unknown."""
        known = None if self.axes is None else self.axes.known
        places = [resolved(axis, rank) for axis in known or ()]
        found = [place for place in places if place is not None]
        return found if known is not None and len(found) == len(places) else None
