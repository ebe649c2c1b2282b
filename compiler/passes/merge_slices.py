"""Slices of slices, single places of an axis, and slices that are all parts of one value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler import origin
from compiler.graph import constant_of, graphs_of
from compiler.passes.merge_reshapes import reshape_target
from compiler.passes.pattern import Const, Match, Op, Var
from compiler.passes.permutation import typed
from compiler.passes.report import Fired, Pass, Report
from compiler.passes.rule import Rewriter, Rule, apply_rules, hand_over, insert, rules_pass

__all__ = ["merge_slices", "split_slices"]

_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class _Range:
    """Places `start, start + step, …` before `end` of an axis; an `end` beyond the axis is its end."""

    start: int
    end: int
    step: int = 1

    def of(self, other: _Range) -> _Range:
        """These places of the places of another range."""
        end = other.start + self.end * other.step
        return _Range(other.start + self.start * other.step, min(end, other.end), self.step * other.step)


def _ranges(node: ir.Node) -> dict[int, _Range] | None:
    """What a Slice takes of each axis that it names, forwards; `None` where that is not known."""
    x, given = node.inputs[0], [constant_of(value) for value in node.inputs[1:]]
    if x is None or x.shape is None or not 3 <= len(given) <= 4 or any(array is None for array in given):
        return None
    columns = [[int(item) for item in array] for array in given if array is not None]
    steps = columns[3] if len(columns) > 3 else [1] * len(columns[0])
    found: dict[int, _Range] = {}
    for start, end, axis, step in zip(*columns[:3], steps, strict=True):
        size = x.shape.dims[axis]
        if isinstance(size, int):
            start, end = (max(0, at + size) if at < 0 else min(at, size) for at in (start, end))
        if step < 1 or start < 0 or end < 0:
            return None
        found[axis % len(x.shape)] = _Range(start, max(start, end), step)
    return found


def _slice(x: ir.Value, ranges: dict[int, _Range], new: Rewriter) -> ir.Value:
    columns = {
        "starts": [each.start for each in ranges.values()],
        "ends": [min(each.end, _FAR) for each in ranges.values()],
        "axes": list(ranges),
        "steps": [each.step for each in ranges.values()],
    }
    return new.op("Slice", x, *(new.constant(np.array(column, np.int64), name) for name, column in columns.items()))


class MergeSlices(Rule):
    """`Slice(Slice(x))` → `Slice(x)` of the places that are left along each axis."""

    pattern = Op("Slice", Op("Slice", Var("x"), rest=True, name="inner"), rest=True)
    keeps_inner = True

    def check(self, match: Match) -> str | None:
        """Both go forwards, and where they begin and end is known."""
        known = _ranges(match.root) is not None and _ranges(match.node("inner")) is not None
        return None if known else "it is not known where they begin and end, or they go backwards"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The one slice."""
        outer, merged = _ranges(match.root) or {}, dict(_ranges(match.node("inner")) or {})
        for axis, places in outer.items():
            merged[axis] = places.of(merged[axis]) if axis in merged else places
        return _slice(match["x"], merged, new)


class SliceOneToGather(Rule):
    """`Squeeze(Slice(x, i, i + 1, axis), axis)` → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Op("Slice", Var("x"), rest=True, name="slice"), Var("axes", optional=True))

    def check(self, match: Match) -> str | None:
        """One place of one axis is taken, and that axis is dropped."""
        return None if _single(match) is not None else "it is not one place of an axis that is known"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The place."""
        axis, place = _single(match) or (0, 0)
        return new.op("Gather", match["x"], new.constant(np.array(place, np.int64), "place"), version=13, axis=axis)


def _single(match: Match) -> tuple[int, int] | None:
    """The axis, and the place that is taken of it, where it is certain to exist."""
    ranges, axes, shape = _ranges(match.node("slice")), _dropped(match), match["x"].shape
    if ranges is None or shape is None or axes is None or len(ranges) != 1:
        return None
    ((axis, places),) = ranges.items()
    size = shape.dims[axis]
    is_one = isinstance(size, int) and places.start < size and places.start + places.step >= places.end > places.start
    return (axis, places.start) if is_one and axes == [axis] else None


class PartOneToGather(Rule):
    """`Squeeze(Split(x)[i], axis)` of parts of one place → `Gather(x, i, axis)`."""

    pattern = Op("Squeeze", Var("part"), Var("axes", optional=True))
    keeps_inner = True

    def check(self, match: Match) -> str | None:
        """It is a part of one place of a Split into such, and its axis is dropped."""
        return None if _part_of_one(match) is not None else "it is no part of one place"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The place."""
        found = _part_of_one(match)
        if found is None:
            raise ValueError("check comes first")
        source, axis, place = found
        return new.op("Gather", source, new.constant(np.array(place, np.int64), "place"), version=13, axis=axis)


def _part_of_one(match: Match) -> tuple[ir.Value, int, int] | None:
    """What is split, its axis, and the place that the part has."""
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


class GatherOfReshape(Rule):
    """`Gather(Reshape(x), i, axis)`, the axis being the outer part of one of `x` → `Reshape(Slice(x))`."""

    pattern = Op("Gather", Op("Reshape", Var("x"), rest=True, name="reshape"), Const("place"))
    keeps_inner = True

    def check(self, match: Match) -> str | None:
        """One place is taken, the axis is the outer part of one of the input, and a constant can say the new shape."""
        return None if _part(match) is not None else "the place is no part of an axis before the reshape"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The part of the axis, in the new shape."""
        part, output = _part(match), match.root.outputs[0]
        if part is None:
            raise ValueError("check comes first")
        axis, places, shape, target = part
        result = typed(_slice(match["x"], {axis: places}, new), output.type, shape)
        return new.op("Reshape", result, new.constant(np.array(target, np.int64), "shape"), version=14)


def _part(match: Match) -> tuple[int, _Range, ir.Shape, list[int]] | None:
    """The axis before the reshape, its part that is taken, the shape of that, and the target of the reshape after."""
    x, cut, result = match["x"].shape, match.node("reshape").outputs[0].shape, match.root.outputs[0].shape
    axis = match.root.attributes["axis"].as_int() if "axis" in match.root.attributes else 0
    if x is None or cut is None or result is None or match.constant("place").ndim or not 0 <= axis < len(x):
        return None
    size, count = x.dims[axis], cut.dims[axis]
    if not isinstance(size, int) or not isinstance(count, int) or not count or size % count:
        return None
    if x.dims[:axis] != cut.dims[:axis] or not _is_cut(x.dims[axis:], cut.dims[axis:]):
        return None
    width, place = size // count, int(match.constant("place")) % count
    shape = ir.Shape([*x.dims[:axis], width, *x.dims[axis + 1 :]])
    target = reshape_target(shape.dims, result.dims)
    return None if target is None else (axis, _Range(place * width, place * width + width), shape, target)


def _is_cut(whole: tuple[int | ir.SymbolicDim, ...], parts: tuple[int | ir.SymbolicDim, ...]) -> bool:
    """Whether the first axis is cut into several, and the others are as they were."""
    count = len(parts) - len(whole) + 1
    numbers = [dim for dim in parts[:count] if isinstance(dim, int)] if count > 0 else []
    if count < 1 or len(numbers) < count or parts[count:] != whole[1:] or math.prod(numbers) != whole[0]:
        return False
    return all(isinstance(dim, int) or dim.value is not None for dim in whole)


def _split_slices(model: ir.Model, report: Report) -> None:
    """`Slice(x, 0, a)`, `Slice(x, a, b)`, … that are together all of `x` → `Split(x)`."""
    apply_rules(model, [GatherOfReshape()], report)
    for graph in graphs_of(model.graph):
        order = {node: index for index, node in enumerate(graph)}
        slices = [node for node in order if node.op_identifier() == ("", "Slice", "")]
        for value in dict.fromkeys(node.inputs[0] for node in slices):
            for axis, parts in _by_axis(value, order).items():
                if _is_whole(value, axis, parts):
                    _split(value, axis, parts, order)
                    report.fired.append(Fired("split", origin.of(parts[0][1])))


_Parts = list[tuple[_Range, ir.Node]]


def _by_axis(value: ir.Value | None, order: dict[ir.Node, int]) -> dict[int, _Parts]:
    """The slices of one axis of a value, in the order of the places that they take."""
    found: dict[int, _Parts] = {}
    readers = dict.fromkeys(use.node for use in value.uses()) if value is not None else {}
    for node in readers:
        ranges = _ranges(node) if node.op_identifier() == ("", "Slice", "") and node in order else None
        if ranges is not None and len(ranges) == 1:
            ((axis, places),) = ranges.items()
            found.setdefault(axis, []).append((places, node))
    return {axis: sorted(parts, key=lambda part: part[0].start) for axis, parts in found.items()}


def _is_whole(value: ir.Value | None, axis: int, parts: _Parts) -> bool:
    """Whether the parts, of which there are several, follow one another and are all of the axis."""
    bounds = [0, *(places.end for places, _ in parts)]
    follow = all(places.start == bound and places.step == 1 for (places, _), bound in zip(parts, bounds, strict=False))
    return (
        len(parts) > 1 and follow and value is not None and value.shape is not None and value.shape[axis] == bounds[-1]
    )


def _split(value: ir.Value | None, axis: int, parts: _Parts, order: dict[ir.Node, int]) -> None:
    first = min((node for _, node in parts), key=order.__getitem__)
    graph = first.graph
    if graph is None:
        raise ValueError("a slice is in no graph")
    new = Rewriter(graph)
    sizes = new.constant(np.array([places.end - places.start for places, _ in parts], np.int64), "sizes")
    results = new.op("Split", value, sizes, outputs=len(parts), version=13, axis=axis)
    origin.inherit(new.nodes, [node for _, node in parts])
    insert(graph, first, new)
    for (_, node), result in zip(parts, results, strict=True):
        hand_over(node.outputs[0], result)
        graph.remove(node, safe=True)


merge_slices = rules_pass(
    "merge_slices", [MergeSlices(), SliceOneToGather(), PartOneToGather()], requires=frozenset({"shapes"})
)
split_slices = Pass("split_slices", _split_slices, requires=frozenset({"shapes", "sorted"}))
