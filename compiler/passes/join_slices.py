"""Flattens nested Concats, and replaces a Concat of adjacent slices with one slice or with the sliced value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank, sole_user
from compiler.ir.views.concat import ConcatView
from compiler.ir.views.slice import Range, ranges_of
from compiler.ir.views.source import resolved
from compiler.ir.views.split import Part
from compiler.rewrite.pattern import AnyOf, Match, Op
from compiler.rewrite.rule import FindingRule, Rewriter, can_be_renamed, rules_pass
from compiler.rewrite.slices import slice_of

__all__ = ["join_slices"]

_END = np.iinfo(np.int64).max


@dataclass(frozen=True)
class _Piece:
    """Elements `start … end - 1` of `source` along `axis`; without `end`, to the last one.

    `value` holds these elements, if a value in the graph does. The axis is not negative.
    """

    value: ir.Value | None
    source: ir.Value
    axis: int
    start: int
    end: int | None

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.end is None


_Parts = list[ir.Value | _Piece]


class JoinSlices(FindingRule[_Parts]):
    """`Concat(x[a:b], x[b:c], …)` → `Concat(x[a:c], …)`, or `x` if the slices cover it."""

    pattern = Op("Concat", AnyOf(Op("Slice", rest=True), Op("Split", rest=True)), rest=True)
    allow_shared_intermediates = True

    def check(self, match: Match) -> _Parts | str:
        """Two parts are adjacent, and the result can take the name of a graph output. Returns the remaining parts."""
        root, view = match.root, ConcatView[ir.Value].of(match.root)
        if view is None:
            return "the axis is not known"
        joined = list(_joined(root, view.axis))
        if len(joined) == len(root.inputs):
            return "no two parts are adjacent in one value"
        output, part = root.outputs[0], joined[0]
        source = part.source if isinstance(part, _Piece) and part.is_whole and len(joined) == 1 else None
        if source is not None and output.is_graph_output() and not can_be_renamed(output, source):
            return f"the output {output.name!r} needs a name of its own"
        return joined

    def rewrite(self, match: Match, found: _Parts, new: Rewriter) -> ir.Value:
        """The remaining parts, joined."""
        parts = [part if isinstance(part, ir.Value) else _value_of(part, new) for part in found]
        return parts[0] if len(parts) == 1 else new.like(match.root, *parts)


class FlattenConcat(FindingRule[list[ir.Value | None]]):
    """`Concat(…, Concat(a, b), …)` along one axis → `Concat(…, a, b, …)`."""

    pattern = Op("Concat", rest=True)

    def check(self, match: Match) -> list[ir.Value | None] | str:
        """An input is a Concat along the same axis without other readers. Returns all parts."""
        inner = [_inner(match.root, value) for value in match.root.inputs]
        if not any(inner):
            return "no input is a Concat"
        parts: list[ir.Value | None] = []
        for node, value in zip(inner, match.root.inputs, strict=True):
            parts += [value] if node is None else node.inputs
        return parts

    def rewrite(self, match: Match, found: list[ir.Value | None], new: Rewriter) -> ir.Value:
        """All parts, joined at once."""
        return new.like(match.root, *found)


def _inner(concat: ir.Node, value: ir.Value | None) -> ir.Node | None:
    """The Concat along the same axis that produces the value, if this node is its only reader."""
    node = None if value is None else value.producer()
    outer, inner = ConcatView[ir.Value].of(concat), ConcatView[ir.Value].of(node)
    if value is None or outer is None or inner is None or sole_user(value) is not concat:
        return None
    dims = rank(value)
    is_same = outer.axis == inner.axis or (
        dims is not None and resolved(outer.axis, dims) == resolved(inner.axis, dims)
    )
    return node if is_same and len(value.uses()) == 1 else None


def _joined(concat: ir.Node, axis: int) -> Iterator[ir.Value | _Piece]:
    """The inputs of a Concat along the axis; adjacent parts of one value are one piece."""
    before: _Piece | None = None
    for value in concat.inputs:
        piece = None if value is None else _piece_of(value, axis)
        if before is not None and piece is not None and before.source is piece.source and before.end == piece.start:
            before = replace(before, value=None, end=piece.end)
            continue
        if before is not None:
            yield before
        if piece is None and value is not None:
            yield value
        before = piece
    if before is not None:
        yield before


def _value_of(piece: _Piece, new: Rewriter) -> ir.Value:
    if piece.value is not None:
        return piece.value
    if piece.is_whole:
        return piece.source
    places = Range(piece.start, _END if piece.end is None else piece.end)
    return slice_of(piece.source, {piece.axis: places}, new)


def _piece_of(value: ir.Value, axis: int) -> _Piece | None:
    """The piece that a Split, or a Slice of only this axis with steps of one, takes; `None` if unknown."""
    node = value.producer()
    source = None if node is None or not node.inputs else node.inputs[0]
    if node is None or source is None or source.shape is None:
        return None
    place = resolved(axis, len(source.shape))
    found = None if place is None else _slice_bounds(node, place) or _split_bounds(value, place)
    if place is None or found is None:
        return None
    (start, end), size = found, source.shape.dims[place]
    is_last = isinstance(size, int) and end is not None and end >= size
    return _Piece(value, source, place, start, None if is_last else end)


def _slice_bounds(node: ir.Node, axis: int) -> tuple[int, int | None] | None:
    """The start and end of a Slice of only this axis with steps of one; `None` for any other Slice."""
    ranges = ranges_of(node)
    if ranges is None or list(ranges) != [axis] or ranges[axis].step != 1:
        return None
    start, end = ranges[axis].start, ranges[axis].end
    return start, None if end >= np.iinfo(np.int32).max else end


def _split_bounds(value: ir.Value, axis: int) -> tuple[int, int | None] | None:
    """The start and end of a Split's output along the axis."""
    part, node = Part.of(value), value.producer()
    if part is None or node is None or part.axis != axis:
        return None
    return part.start, None if value is node.outputs[-1] else part.end


join_slices = rules_pass(
    "join_slices", [FlattenConcat(), JoinSlices()], result="joins simplified", requires=frozenset({"shapes"})
)
