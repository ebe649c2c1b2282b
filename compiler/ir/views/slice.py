"""Slice: the range of each axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.views.source import Listed, Source, V, View, ints_of, resolved

__all__ = ["Range", "SliceView", "ranges_of"]


@dataclass(frozen=True)
class Range:
    """The indices `start, start + step, …` before `end` of an axis; an `end` beyond the axis means the axis's end."""

    start: int
    end: int
    step: int = 1

    def of(self, other: Range) -> Range:
        """The composition of both ranges: this range of the elements of `other`."""
        end = other.start + self.end * other.step
        return Range(other.start + self.start * other.step, min(end, other.end), self.step * other.step)


@dataclass(frozen=True)
class SliceView(View[V]):
    """`Slice`: the bounds are attributes before version 10, and inputs from version 10 on.

    Source: https://onnx.ai/onnx/operators/onnx__Slice.html
    """

    operators = (("", "Slice"),)

    x: V | None
    starts: Listed[V, int] | None
    ends: Listed[V, int] | None
    axes: Listed[V, int] | None
    """`None`: the first axes."""
    steps: Listed[V, int] | None
    """`None`: 1 for each axis; the operator has no steps before version 10."""

    @classmethod
    def read(cls, node: Source[V]) -> SliceView[V]:
        """The view of a Slice."""
        starts, ends = (ints_of(node, name, at, 10, required=True) for name, at in (("starts", 1), ("ends", 2)))
        steps = ints_of(node, "steps", 4, 10) if node.is_since(10, "starts") else None
        return cls(node.optional(0), starts, ends, ints_of(node, "axes", 3, 10), steps)

    def ranges(self, dims: Sequence[object]) -> dict[int, Range | None] | None:
        """The range of each named axis, for an input with the dimensions `dims`.

        A range is `None` if its step is negative, or if a negative bound refers to an unknown size. The result is
        `None` if the numbers are unknown or inconsistent.
        """
        bounds = self.bounds(len(dims))
        return None if bounds is None else {axis: _range(dims[axis], *each) for axis, each in bounds.items()}

    def bounds(self, rank: int) -> dict[int, tuple[int, int, int]] | None:
        """The start, end and step of each named axis; `None` if the numbers are unknown or inconsistent."""
        if self.starts is None or self.ends is None:
            return None
        starts, ends = self.starts.known, self.ends.known
        if starts is None or ends is None:
            return None
        axes = tuple(range(len(starts))) if self.axes is None else self.axes.known
        steps = (1,) * len(starts) if self.steps is None else self.steps.known
        if axes is None or steps is None or {len(each) for each in (ends, axes, steps)} != {len(starts)}:
            return None
        places = [resolved(axis, rank) for axis in axes]
        numbers = zip(starts, ends, steps, strict=True)
        named = {axis: each for axis, each in zip(places, numbers, strict=True) if axis is not None}
        return named if len(named) == len(places) else None


def _range(size: object, start: int, end: int, step: int) -> Range | None:
    if isinstance(size, int):
        start, end = (max(0, at + size) if at < 0 else min(at, size) for at in (start, end))
    return None if step < 1 or start < 0 or end < 0 else Range(start, max(start, end), step)


def ranges_of(node: ir.Node | None) -> dict[int, Range] | None:
    """The range of each axis that a Slice names; `None` if one is unknown or backward, or for another node."""
    view = SliceView[ir.Value].of(node)
    if view is None or view.x is None or view.x.shape is None:
        return None
    ranges = view.ranges(view.x.shape.dims)
    known = {} if ranges is None else {axis: each for axis, each in ranges.items() if each is not None}
    return known if ranges is not None and len(known) == len(ranges) else None
