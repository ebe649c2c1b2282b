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
    """`Slice(Slice(x))` → `Slice(x)` of the places that are left along each axis."""

    pattern = Op("Slice", Op("Slice", Var("x"), rest=True, name="inner"), rest=True)
    allow_shared_intermediates = True

    def check(self, match: Match) -> dict[int, Range] | str:
        """Both go forwards, and their starts and ends are known. Returns the remaining range of each axis."""
        outer, inner = ranges_of(match.root), ranges_of(match.node("inner"))
        if outer is None or inner is None:
            return "starts or ends are unknown, or a slice goes backward"
        both = {axis: places.of(inner[axis]) if axis in inner else places for axis, places in outer.items()}
        return {**inner, **both}

    def rewrite(self, match: Match, found: dict[int, Range], new: Rewriter) -> ir.Value:
        """The one slice."""
        return slice_of(match["x"], found, new)


@dataclass(frozen=True)
class _Place:
    """One place of an axis of a value."""

    source: ir.Value
    axis: int
    place: int

    def gather(self, new: Rewriter) -> ir.Value:
        """The node that takes it."""
        return new.op(
            "Gather", self.source, new.constant(np.array(self.place, np.int64), "place"), version=13, axis=self.axis
        )


class SliceOneToGather(FindingRule[_Place]):
    """`Squeeze(Slice(x, i, i + 1, axis), axis)` → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Op("Slice", Var("x"), rest=True, name="slice"), Var("axes", optional=True))

    def check(self, match: Match) -> _Place | str:
        """One place of one axis is taken, and that axis is dropped."""
        return _single(match) or "it does not take one known index of an axis"

    def rewrite(self, match: Match, found: _Place, new: Rewriter) -> ir.Value:
        """The place."""
        return found.gather(new)


def _single(match: Match) -> _Place | None:
    """The place that is taken, where it is certain to exist."""
    ranges, axes, shape = ranges_of(match.node("slice")), _dropped(match), match["x"].shape
    if ranges is None or shape is None or axes is None or len(ranges) != 1:
        return None
    ((axis, places),) = ranges.items()
    size = shape.dims[axis]
    is_one = isinstance(size, int) and places.start < size and places.start + places.step >= places.end > places.start
    return _Place(match["x"], axis, places.start) if is_one and axes == [axis] else None


class PartOneToGather(FindingRule[_Place]):
    """`Squeeze(Split(x)[i], axis)` of parts of one place → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Var("part"), Var("axes", optional=True))
    allow_shared_intermediates = True
    looks_above = 1

    def check(self, match: Match) -> _Place | str:
        """It is a part of one place of a Split, and its axis is dropped."""
        return _part_of_one(match) or "it is not a part of size one"

    def rewrite(self, match: Match, found: _Place, new: Rewriter) -> ir.Value:
        """The place."""
        return found.gather(new)


def _part_of_one(match: Match) -> _Place | None:
    """The position of the part in the split value."""
    part = Part.of(match["part"])
    if part is None or part.end != part.start + 1 or _dropped(match) != [part.axis]:
        return None
    return _Place(part.source, part.axis, part.start)


def _dropped(match: Match) -> list[int] | None:
    """The axes that the root, a Squeeze, drops."""
    view, inner = SqueezeView[ir.Value].of(match.root), match.root.inputs[0]
    return None if view is None or inner is None or inner.shape is None else view.places(len(inner.shape))


merge_slices = rules_pass(
    "merge_slices",
    [MergeSlices(), SliceOneToGather(), PartOneToGather()],
    result="slices simplified",
    requires=frozenset({"shapes"}),
)
