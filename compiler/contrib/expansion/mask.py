"""The masks of onnxruntime's attention as terms of the scores."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from compiler.contrib.expansion.body import INT64, Body, Size
from compiler.contrib.expansion.node import Node

__all__ = ["Scores", "causal_terms", "padding_mask", "sum_of"]

_WITH_STARTS = ("Attention", "QAttention")
"""The operators whose masks may also hold the start of the visible keys."""


@dataclass(frozen=True)
class Scores:
    """The sizes of the scores `[batch, heads, queries, keys]`, the number of past keys, and the type."""

    batch: Size
    queries: Size
    past: Size
    keys: Size
    dtype: ir.DataType


def padding_mask(
    node: Node, new: Body, index: int, name: str, scores: Scores, *, is_exact: bool | ir.Value = False
) -> ir.Value | None:
    """The term `[B, 1, 1 or S, T]` of a mask: 0 for visible keys, and the attribute `mask_filter_value` for others.

    The mask is the number of visible keys `[B]`, or `[3 · B + 2]` whose first B elements are that number; or ones and
    zeros, `[B, T]` or `[B, S, T]`. A mask of Attention and QAttention may also be the end and the start of the visible
    keys `[2 · B]`, and `[B, 1]` is no mask. With `is_exact`, only 0 hides a key; otherwise, a negative
    number does too.
    """
    hidden_score = node.float("mask_filter_value", -10000.0)
    mask = node.optional(index)
    if mask is None:
        return None
    rank = node.rank(index, name, 1, 2, 3)
    if rank == 2 and node.op_type in _WITH_STARTS and node.known_size(index, 1) == 1:
        return None
    if rank == 1:
        hidden = _outside(node, new, mask, scores)
    else:
        rows: list[Size] = [scores.queries] if rank == 3 else [1]
        marks = new.reshape(mask, scores.batch, 1, *rows, scores.keys)
        hidden = _hiding(new, marks, new.scalar(0, mask.dtype or ir.DataType.INT32), is_exact)
    return _penalty(new, hidden, hidden_score, scores.dtype)


def _hiding(new: Body, marks: ir.Value, zero: ir.Value, is_exact: bool | ir.Value) -> ir.Value:
    """Whether a mark hides its key."""
    if isinstance(is_exact, bool):
        return new.op("Equal" if is_exact else "LessOrEqual", marks, zero)
    return new.op("Where", is_exact, _hiding(new, marks, zero, True), _hiding(new, marks, zero, False))


def _outside(node: Node, new: Body, mask: ir.Value, scores: Scores) -> ir.Value:
    """Whether a key lies outside of its row's visible keys, as `[B, 1, 1, T]`."""
    marks = new.op("Cast", mask, to=INT64)
    keys = new.positions(scores.keys)
    ends = new.reshape(new.slice(marks, 0, 0, scores.batch), -1, 1, 1, 1)
    hidden = new.op("GreaterOrEqual", keys, ends)
    if node.op_type not in _WITH_STARTS:
        return hidden
    batch = new.sizes(scores.batch)
    twice = new.op("Add", batch, batch)
    second = new.slice(new.op("Concat", marks, new.op("Expand", new.numbers(0), batch), axis=0), 0, batch, twice)
    has_starts = new.op("Equal", new.op("Shape", marks), twice)
    starts = new.reshape(new.op("Where", has_starts, second, new.numbers(0)), -1, 1, 1, 1)
    return new.op("Or", hidden, new.op("Less", keys, starts))


def causal_terms(node: Node, new: Body, scores: Scores, *, is_square: bool) -> tuple[int, ir.Value | None]:
    """The attribute `is_causal` of Attention, and the mask that stands for it if it would differ.

    They agree if there are as many new keys as queries, `is_square`.
    """
    if not node.flag("unidirectional", False):
        return 0, None
    return (1, None) if is_square else (0, _causal_mask(new, scores))


def _causal_mask(new: Body, scores: Scores) -> ir.Value:
    """The term `[S, T]` of onnxruntime's causal mask, where the last query sees every key."""
    rows = new.unsqueeze(new.positions(scores.queries), 1)
    after = new.op("Greater", new.positions(scores.keys), new.op("Add", rows, new.sizes(scores.past)))
    is_last = new.op("Equal", rows, new.op("Sub", new.sizes(scores.queries), new.numbers(1)))
    hidden = new.op("And", after, new.op("Not", is_last))
    return _penalty(new, hidden, float("-inf"), scores.dtype)


def _penalty(new: Body, hidden: ir.Value, score: float, dtype: ir.DataType) -> ir.Value:
    return new.op("Where", hidden, new.scalar(score, dtype), new.scalar(0, dtype))


def sum_of(new: Body, *terms: ir.Value | None) -> ir.Value | None:
    """The sum of the masks that are given."""
    given = [term for term in terms if term is not None]
    return new.total(*given) if given else None
