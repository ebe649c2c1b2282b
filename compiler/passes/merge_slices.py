"""Merges consecutive slices, and replaces a slice of one index and the Squeeze after it with one Gather."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir.views.reshape import SqueezeView
from compiler.ir.views.slice import Range, ranges_of
from compiler.ir.views.split import Part
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass
from compiler.rewrite.slices import slice_of

__all__ = ["merge_slices"]


class MergeSlices(FindingRule[dict[int, Range]]):
    """`Slice(Slice(x))` → `Slice(x)` of the remaining range of each axis."""

    pattern = Op("Slice", Op("Slice", Var("x"), rest=True, name="inner"), rest=True)
    allow_shared_intermediates = True

    def check(self, match: Match) -> dict[int, Range] | str:
        """Both have positive steps, and known starts and ends. Returns the remaining range of each axis."""
        outer, inner = ranges_of(match.root), ranges_of(match.node("inner"))
        if outer is None or inner is None:
            return "starts or ends are unknown, or a slice has a negative step"
        both = {axis: places.of(inner[axis]) if axis in inner else places for axis, places in outer.items()}
        return {**inner, **both}

    def rewrite(self, match: Match, found: dict[int, Range], new: Rewriter) -> ir.Value:
        """The one slice."""
        return slice_of(match["x"], found, new)


@dataclass(frozen=True)
class _Index:
    """One index of an axis of a value."""

    source: ir.Value
    axis: int
    index: int

    def gather(self, new: Rewriter) -> ir.Value:
        """A Gather of the index."""
        return new.op(
            "Gather", self.source, new.constant(np.array(self.index, np.int64), "place"), version=13, axis=self.axis
        )


class SliceOneToGather(FindingRule[_Index]):
    """`Squeeze(Slice(x, i, i + 1, axis), axis)` → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Op("Slice", Var("x"), rest=True, name="slice"), Var("axes", optional=True))

    def check(self, match: Match) -> _Index | str:
        """The Slice takes one index of one axis, and the Squeeze drops that axis."""
        return _single(match) or "it does not take one known index of an axis"

    def rewrite(self, match: Match, found: _Index, new: Rewriter) -> ir.Value:
        """The Gather."""
        return found.gather(new)


def _single(match: Match) -> _Index | None:
    """The index that the Slice takes; `None` if it may be out of range, or is unknown."""
    ranges, axes, shape = ranges_of(match.node("slice")), _dropped(match), match["x"].shape
    if ranges is None or shape is None or axes is None or len(ranges) != 1:
        return None
    ((axis, places),) = ranges.items()
    size = shape.dims[axis]
    is_one = isinstance(size, int) and places.start < size and places.start + places.step >= places.end > places.start
    return _Index(match["x"], axis, places.start) if is_one and axes == [axis] else None


class PartOneToGather(FindingRule[_Index]):
    """`Squeeze(Split(x)[i], axis)` of a part of size 1 → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Var("part"), Var("axes", optional=True))
    allow_shared_intermediates = True
    looks_above = 1

    def check(self, match: Match) -> _Index | str:
        """The value is a part of size 1 of a Split, and the Squeeze drops its axis."""
        return _part_of_one(match) or "it is not a part of size one"

    def rewrite(self, match: Match, found: _Index, new: Rewriter) -> ir.Value:
        """The Gather."""
        return found.gather(new)


def _part_of_one(match: Match) -> _Index | None:
    """The index of the part in the value that is split; `None` if its size is not 1."""
    part = Part.of(match["part"])
    if part is None or part.end != part.start + 1 or _dropped(match) != [part.axis]:
        return None
    return _Index(part.source, part.axis, part.start)


def _dropped(match: Match) -> list[int] | None:
    """The axes that the root, a Squeeze, drops."""
    view, inner = SqueezeView[ir.Value].of(match.root), match.root.inputs[0]
    return None if view is None or inner is None or inner.shape is None else view.normalized_axes(len(inner.shape))


merge_slices = rules_pass(
    "merge_slices",
    [MergeSlices(), SliceOneToGather(), PartOneToGather()],
    result="slices simplified",
    requires=frozenset({"shapes"}),
)
