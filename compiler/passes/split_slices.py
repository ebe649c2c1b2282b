"""Replaces slices that together cover a value with one Split. Each slice may also be a Gather after a Reshape."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir import origin
from compiler.ir.graph import graph_of, graphs_of
from compiler.ir.views.gather import GatherView
from compiler.ir.views.slice import Range, ranges_of
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.permutation import typed
from compiler.rewrite.report import Fired, Pass, PassReport
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import FindingRule, Rewriter, apply_rules, insert, replace_uses
from compiler.rewrite.slices import slice_of

__all__ = ["split_slices"]


@dataclass(frozen=True)
class _Part:
    """The range of an axis before the reshape, the slice's shape, and the shape input of the new reshape."""

    axis: int
    places: Range
    shape: ir.Shape
    target: list[int]


class GatherOfReshape(FindingRule[_Part]):
    """`Gather(Reshape(x), i, axis)`, where the Reshape splits `axis` off an axis of `x` → `Reshape(Slice(x))`."""

    pattern = Op("Gather", Op("Reshape", Var("x"), rest=True, name="reshape"), Const("place"))
    allow_shared_intermediates = True

    def check(self, match: Match) -> _Part | str:
        """The Gather takes one index of the outermost part of an axis of `x`; a constant can describe the new shape."""
        return _part(match) or "the index is not a part of an axis before the reshape"

    def rewrite(self, match: Match, found: _Part, new: Rewriter) -> ir.Value:
        """The slice, in the new shape."""
        part = typed(slice_of(match["x"], {found.axis: found.places}, new), match.root.outputs[0].type, found.shape)
        return new.op("Reshape", part, new.constant(np.array(found.target, np.int64), "shape"), version=14)


def _part(match: Match) -> _Part | None:
    x, cut, result = match["x"].shape, match.node("reshape").outputs[0].shape, match.root.outputs[0].shape
    view = GatherView[ir.Value].of(match.root)
    if view is None or x is None or cut is None or result is None or match.constant("place").ndim:
        return None
    axis = view.normalized_axis(len(cut))
    if axis is None or axis >= len(x):
        return None
    size, count = x.dims[axis], cut.dims[axis]
    if not isinstance(size, int) or not isinstance(count, int) or not count or size % count:
        return None
    if x.dims[:axis] != cut.dims[:axis] or not _is_cut(x.dims[axis:], cut.dims[axis:]):
        return None
    width, place = size // count, int(match.constant("place")) % count
    shape = ir.Shape([*x.dims[:axis], width, *x.dims[axis + 1 :]])
    target = reshape_target(shape.dims, result.dims)
    return None if target is None else _Part(axis, Range(place * width, place * width + width), shape, target)


def _is_cut(whole: tuple[int | ir.SymbolicDim, ...], parts: tuple[int | ir.SymbolicDim, ...]) -> bool:
    """Whether `parts` splits the first axis of `whole` into several, and keeps the others."""
    count = len(parts) - len(whole) + 1
    numbers = [dim for dim in parts[:count] if isinstance(dim, int)] if count > 0 else []
    if count < 1 or len(numbers) < count or parts[count:] != whole[1:] or math.prod(numbers) != whole[0]:
        return False
    return all(isinstance(dim, int) or dim.value is not None for dim in whole)


def _split_slices(model: ir.Model, report: PassReport) -> None:
    """Replaces `Slice(x, 0, a)`, `Slice(x, a, b)`, … that together cover `x` with `Split(x)`."""
    apply_rules(model, [GatherOfReshape()], report)
    for graph in graphs_of(model.graph):
        order = {node: index for index, node in enumerate(graph)}
        slices = [node for node in order if node.op_identifier() == ("", "Slice", "")]
        for value in dict.fromkeys(node.inputs[0] for node in slices):
            for axis, parts in _by_axis(value, order).items():
                if _is_whole(value, axis, parts):
                    _split(value, axis, parts, order)
                    report.fired.append(Fired("split", origin.of(parts[0][1])))


_Parts = list[tuple[Range, ir.Node]]


def _by_axis(value: ir.Value | None, order: dict[ir.Node, int]) -> dict[int, _Parts]:
    """The slices of a value along one axis, by axis, each list in the order of their ranges."""
    found: dict[int, _Parts] = {}
    readers = dict.fromkeys(use.node for use in value.uses()) if value is not None else {}
    for node in readers:
        ranges = ranges_of(node) if node.op_identifier() == ("", "Slice", "") and node in order else None
        if ranges is not None and len(ranges) == 1:
            ((axis, places),) = ranges.items()
            found.setdefault(axis, []).append((places, node))
    return {axis: sorted(parts, key=lambda part: part[0].start) for axis, parts in found.items()}


def _is_whole(value: ir.Value | None, axis: int, parts: _Parts) -> bool:
    """Whether there are several parts, and they cover the axis without gaps or overlaps."""
    bounds = [0, *(places.end for places, _ in parts)]
    follow = all(places.start == bound and places.step == 1 for (places, _), bound in zip(parts, bounds, strict=False))
    return (
        len(parts) > 1 and follow and value is not None and value.shape is not None and value.shape[axis] == bounds[-1]
    )


def _split(value: ir.Value | None, axis: int, parts: _Parts, order: dict[ir.Node, int]) -> None:
    first = min((node for _, node in parts), key=order.__getitem__)
    graph = graph_of(first)
    new = Rewriter(graph)
    sizes = new.constant(np.array([places.end - places.start for places, _ in parts], np.int64), "sizes")
    results = new.op("Split", value, sizes, outputs=len(parts), version=13, axis=axis)
    origin.inherit(new.nodes, [node for _, node in parts])
    insert(graph, first, new)
    for (_, node), result in zip(parts, results, strict=True):
        replace_uses(node.outputs[0], result)
        graph.remove(node, safe=True)


split_slices = Pass("split_slices", _split_slices, result="slices simplified", requires=frozenset({"shapes", "sorted"}))
