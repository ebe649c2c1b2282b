"""Flattens nested Concats, and replaces a Concat of adjacent slices with one slice or with the sliced value itself."""

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
from compiler.rewrite.rule import Rewriter, Rule, can_be_renamed, rules_pass
from compiler.rewrite.slices import slice_of

__all__ = ["join_slices"]

_END = np.iinfo(np.int64).max


@dataclass(frozen=True)
class _Piece:
    """Elements `start … end - 1` of `source` along the axis; without `end`, to the last. `value` holds them."""

    value: ir.Value | None
    source: ir.Value
    start: int
    end: int | None

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.end is None


class JoinSlices(Rule):
    """`Concat(x[a:b], x[b:c], …)` → `Concat(x[a:c], …)`, and `x` where that is all of it."""

    pattern = Op("Concat", AnyOf(Op("Slice", rest=True), Op("Split", rest=True)), rest=True)
    allow_shared_intermediates = True

    def check(self, match: Match) -> str | None:
        """Two parts follow one another; an output of the graph keeps its name."""
        root = match.root
        joined = list(_joined(root))
        if len(joined) == len(root.inputs):
            return "no two parts follow one another in one value"
        output, part = root.outputs[0], joined[0]
        source = part.source if isinstance(part, _Piece) and part.is_whole and len(joined) == 1 else None
        if source is not None and output.is_graph_output() and not can_be_renamed(output, source):
            return f"the output {output.name!r} needs a name of its own"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The parts that are left, joined."""
        axis = _axis_of(match.root)
        parts = [part if isinstance(part, ir.Value) else _made(part, axis, new) for part in _joined(match.root)]
        return parts[0] if len(parts) == 1 else new.like(match.root, *parts)


class FlattenConcat(Rule):
    """`Concat(…, Concat(a, b), …)` along one axis → `Concat(…, a, b, …)`."""

    pattern = Op("Concat", rest=True)

    def check(self, match: Match) -> str | None:
        """An input is a Concat along the same axis, which nothing else reads."""
        return None if any(_inner(match.root, value) for value in match.root.inputs) else "it joins no joined parts"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """All parts, joined at once."""
        parts: list[ir.Value | None] = []
        for value in match.root.inputs:
            inner = _inner(match.root, value)
            parts += [value] if inner is None else inner.inputs
        return new.like(match.root, *parts)


def _axis_of(concat: ir.Node) -> int:
    """The axis along which a Concat joins."""
    view = ConcatView[ir.Value].of(concat)
    if view is None:
        raise ValueError(f"{concat.op_type} {concat.name} has no axis")
    return view.axis


def _inner(concat: ir.Node, value: ir.Value | None) -> ir.Node | None:
    """The Concat along the same axis that made the value for this node alone."""
    node = None if value is None else value.producer()
    if node is None or value is None or node.op_identifier() != ("", "Concat", "") or sole_user(value) is not concat:
        return None
    axes, dims = [_axis_of(each) for each in (concat, node)], rank(value)
    is_same = axes[0] == axes[1] or (dims is not None and resolved(axes[0], dims) == resolved(axes[1], dims))
    return node if is_same and len(value.uses()) == 1 else None


def _joined(concat: ir.Node) -> Iterator[ir.Value | _Piece]:
    """The inputs, those that follow one another in one value as one piece."""
    axis = _axis_of(concat)
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


def _made(piece: _Piece, axis: int, new: Rewriter) -> ir.Value:
    if piece.value is not None:
        return piece.value
    if piece.is_whole:
        return piece.source
    place = resolved(axis, rank(piece.source) or 0)
    if place is None:
        raise ValueError(f"a piece of {piece.source.name} has no axis {axis}")
    return slice_of(piece.source, {place: Range(piece.start, _END if piece.end is None else piece.end)}, new)


def _piece_of(value: ir.Value, axis: int) -> _Piece | None:
    """The piece that a Slice of only this axis, in steps of one, or a Split takes; `None` if unknown."""
    node = value.producer()
    source = None if node is None or not node.inputs else node.inputs[0]
    if node is None or source is None or source.shape is None:
        return None
    place = resolved(axis, len(source.shape))
    found = None if place is None else _slice_bounds(node, place) or _split_bounds(value, place)
    if place is None or found is None:
        return None
    (start, end), size = found, source.shape.dims[place]
    return _Piece(value, source, start, None if isinstance(size, int) and end is not None and end >= size else end)


def _slice_bounds(node: ir.Node, axis: int) -> tuple[int, int | None] | None:
    """Start and end of a Slice of the axis alone, in steps of one."""
    ranges = ranges_of(node)
    if ranges is None or list(ranges) != [axis] or ranges[axis].step != 1:
        return None
    start, end = ranges[axis].start, ranges[axis].end
    return start, None if end >= np.iinfo(np.int32).max else end


def _split_bounds(value: ir.Value, axis: int) -> tuple[int, int | None] | None:
    """Start and end of a Split's output along the axis."""
    part, node = Part.of(value), value.producer()
    if part is None or node is None or part.axis != axis:
        return None
    return part.start, None if value is node.outputs[-1] else part.end


join_slices = rules_pass(
    "join_slices", [FlattenConcat(), JoinSlices()], result="joins simplified", requires=frozenset({"shapes"})
)
