"""Flattens nested Concats, and replaces a Concat of adjacent slices with one slice or with the sliced value itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank, sole_user
from compiler.rewrite.pattern import AnyOf, Match, Op
from compiler.rewrite.rule import Rewriter, Rule, can_be_renamed, rules_pass

__all__ = ["join_slices"]


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
        axis = match.root.attributes["axis"].as_int()
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


def _inner(concat: ir.Node, value: ir.Value | None) -> ir.Node | None:
    """The Concat along the same axis that made the value for this node alone."""
    node = None if value is None else value.producer()
    if node is None or value is None or node.op_identifier() != ("", "Concat", "") or sole_user(value) is not concat:
        return None
    axes, dims = [each.attributes["axis"].as_int() for each in (concat, node)], rank(value)
    is_same = axes[0] == axes[1] or (dims is not None and axes[0] % dims == axes[1] % dims)
    return node if is_same and len(value.uses()) == 1 else None


def _joined(concat: ir.Node) -> Iterator[ir.Value | _Piece]:
    """The inputs, those that follow one another in one value as one piece."""
    axis = concat.attributes["axis"].as_int()
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
    ends = [np.iinfo(np.int64).max if piece.end is None else piece.end]
    bounds = [
        new.constant(np.array(each, np.int64), name) for each, name in (([piece.start], "starts"), (ends, "ends"))
    ]
    return new.op("Slice", piece.source, *bounds, new.constant(np.array([axis], np.int64), "axes"))


def _piece_of(value: ir.Value, axis: int) -> _Piece | None:
    """The piece that a Slice of only this axis, in steps of one, or a Split takes; `None` if unknown."""
    node = value.producer()
    source = None if node is None or not node.inputs else node.inputs[0]
    if node is None or source is None or node.domain or source.shape is None:
        return None
    axis += source.shape.rank() if axis < 0 else 0
    if not 0 <= axis < source.shape.rank():
        return None
    dim = source.shape.dims[axis]
    size = dim if isinstance(dim, int) else None
    bounds = {"Slice": _slice_bounds, "Split": _split_bounds}.get(node.op_type)
    found = None if bounds is None else bounds(node, value, axis, size)
    if found is None:
        return None
    start, end = found
    return _Piece(value, source, start, None if size is not None and end is not None and end >= size else end)


def _slice_bounds(node: ir.Node, _: ir.Value, axis: int, size: int | None) -> tuple[int, int | None] | None:
    """Start and end of a Slice; negative ones need the size."""
    given = [constant_of(each) for each in node.inputs[1:]]
    if len(given) < 3 or any(each is None or each.size != 1 for each in given):
        return None
    start, end, sliced, *steps = (int(each.item()) for each in given if each is not None)
    rank = node.inputs[0].shape.rank() if node.inputs[0] is not None and node.inputs[0].shape is not None else 0
    if sliced % max(rank, 1) != axis or steps not in ([], [1]):
        return None
    if size is not None:
        start, end = (max(0, each + size) if each < 0 else min(each, size) for each in (start, end))
    if not 0 <= start <= end:
        return None
    return start, None if end >= np.iinfo(np.int32).max else end


def _split_bounds(node: ir.Node, value: ir.Value, axis: int, size: int | None) -> tuple[int, int | None] | None:
    """Start and end of a Split's output, from the sizes of those before it."""
    split = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    shapes = [each.shape for each in node.outputs[: node.outputs.index(value) + 1]]
    source = node.inputs[0]
    if source is None or source.shape is None or split % source.shape.rank() != axis or None in shapes:
        return None
    sizes = [shape.dims[axis] for shape in shapes if shape is not None]
    numbers = [each for each in sizes if isinstance(each, int)]
    if len(numbers) < len(sizes):
        return None
    end = sum(numbers)
    return end - numbers[-1], None if value is node.outputs[-1] else end


join_slices = rules_pass(
    "join_slices", [FlattenConcat(), JoinSlices()], result="joins simplified", requires=frozenset({"shapes"})
)
