"""Merges consecutive slices, and replaces a slice of one index and the Squeeze after it with one Gather."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of
from compiler.rewrite.pattern import Match, Op, Var
from compiler.rewrite.rule import Rewriter, Rule, rules_pass
from compiler.rewrite.slices import ranges_of, slice_of

__all__ = ["merge_slices"]


class MergeSlices(Rule):
    """`Slice(Slice(x))` → `Slice(x)` of the places that are left along each axis."""

    pattern = Op("Slice", Op("Slice", Var("x"), rest=True, name="inner"), rest=True)
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """Both go forwards, and where they begin and end is known."""
        known = ranges_of(match.root) is not None and ranges_of(match.node("inner")) is not None
        return None if known else "starts or ends are unknown, or a slice goes backward"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The one slice."""
        outer, merged = ranges_of(match.root) or {}, dict(ranges_of(match.node("inner")) or {})
        for axis, places in outer.items():
            merged[axis] = places.of(merged[axis]) if axis in merged else places
        return slice_of(match["x"], merged, new)


class SliceOneToGather(Rule):
    """`Squeeze(Slice(x, i, i + 1, axis), axis)` → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Op("Slice", Var("x"), rest=True, name="slice"), Var("axes", optional=True))

    def check(self, match: Match) -> str | None:
        """One place of one axis is taken, and that axis is dropped."""
        return None if _single(match) is not None else "it does not take one known index of an axis"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The place."""
        axis, place = _single(match) or (0, 0)
        return new.op("Gather", match["x"], new.constant(np.array(place, np.int64), "place"), version=13, axis=axis)


def _single(match: Match) -> tuple[int, int] | None:
    """The axis, and the place that is taken of it, where it is certain to exist."""
    ranges, axes, shape = ranges_of(match.node("slice")), _dropped(match), match["x"].shape
    if ranges is None or shape is None or axes is None or len(ranges) != 1:
        return None
    ((axis, places),) = ranges.items()
    size = shape.dims[axis]
    is_one = isinstance(size, int) and places.start < size and places.start + places.step >= places.end > places.start
    return (axis, places.start) if is_one and axes == [axis] else None


class PartOneToGather(Rule):
    """`Squeeze(Split(x)[i], axis)` of parts of one place → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Var("part"), Var("axes", optional=True))
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """It is a part of one place of a Split into such, and its axis is dropped."""
        return None if _part_of_one(match) is not None else "it is not a part of size one"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The place."""
        found = _part_of_one(match)
        if found is None:
            raise ValueError("check comes first")
        source, axis, place = found
        return new.op("Gather", source, new.constant(np.array(place, np.int64), "place"), version=13, axis=axis)


def _part_of_one(match: Match) -> tuple[ir.Value, int, int] | None:
    """The split value, its axis, and the position of the part."""
    node, place = match["part"].producer(), match["part"].index()
    source = None if node is None or node.op_identifier() != ("", "Split", "") else node.inputs[0]
    axes = _dropped(match)
    if node is None or source is None or source.shape is None or axes is None or place is None:
        return None
    axis = (node.attributes["axis"].as_int() if "axis" in node.attributes else 0) % len(source.shape)
    before = [None if value.shape is None else value.shape.dims[axis] for value in node.outputs[: place + 1]]
    return (source, axis, place) if set(before) == {1} and axes == [axis] else None


def _dropped(match: Match) -> list[int] | None:
    """The axes that the root, a Squeeze, drops."""
    given, inner = match.root.attributes, match.root.inputs[0]
    axes = given["axes"].value if "axes" in given else constant_of(match["axes"]) if match.has("axes") else None
    if axes is None or inner is None or inner.shape is None:
        return None
    return [int(axis) % len(inner.shape) for axis in axes]


merge_slices = rules_pass(
    "merge_slices",
    [MergeSlices(), SliceOneToGather(), PartOneToGather()],
    result="slices simplified",
    requires=frozenset({"shapes"}),
)
