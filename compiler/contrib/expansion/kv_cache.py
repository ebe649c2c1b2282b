"""The cache of keys and values of GroupQueryAttention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import INT64, Body, Size
from compiler.contrib.expansion.node import Node
from compiler.ir.graph import PLAN_DOMAIN
from compiler.rewrite.permutation import typed

__all__ = ["Cache", "Lengths"]


@dataclass(frozen=True)
class Lengths:
    """The numbers of queries S and of keys `total`; for each row, the index of its last key, and its past keys.

    A row has `last + 1` keys, and the new ones are the last S of them. If S is `total`, no row has past keys: then the
    queries after the last key are padding.
    """

    queries: Size
    total: ir.Value
    """`int64 [1]`."""
    last: ir.Value
    """`int64 [B]`."""
    before: ir.Value
    """`int64 [B]`, or `[1]` if the node has no past."""

    @staticmethod
    def read(node: Node, new: Body) -> Lengths:
        """The lengths that the inputs `seqlens_k` and `total_sequence_length` give."""
        queries = new.size(node.input(0), 1)
        total = new.reshape(new.op("Cast", node.input(6), to=INT64), 1)
        last = new.reshape(new.op("Cast", node.input(5), to=INT64), -1)
        if node.optional(3) is None:
            return Lengths(queries, total, last, new.numbers(0))
        count = new.sizes(queries)
        before = new.op("Sub", new.op("Add", last, new.numbers(1)), count)
        before = new.op("Where", new.op("Equal", total, count), new.numbers(0), before)
        return Lengths(queries, total, last, before)


@dataclass(frozen=True)
class Cache:
    """The present keys and values `[B, Nk, T, H]`, where T is the larger one of `total` and the past's size."""

    key: ir.Value
    value: ir.Value

    @staticmethod
    def present(node: Node, new: Body, added: tuple[ir.Value, ir.Value], lengths: Lengths) -> Cache:
        """The past keys of each row, then the new ones, then zeros."""
        if not _has_past(node):
            return Cache(*added)
        key, value = added
        return Cache(_appended(new, node.input(3), key, lengths), _appended(new, node.input(4), value, lengths))

    @staticmethod
    def shared(node: Node, new: Body, lengths: Lengths) -> Cache:
        """The past keys of each row up to its last one, then zeros: the past holds the keys of the queries too."""
        if not _has_past(node):
            node.refuse("CC0205", "GroupQueryAttention needs past_key and past_value if its key and value are empty")
        held = new.sizes(new.size(node.input(3), 2))
        kept, cut = Body(None), Body(None)
        more = cut.sizes(0, 0, 0, 0, 0, 0, cut.op("Max", cut.op("Sub", lengths.total, held), cut.numbers(0)), 0)
        is_held = cut.op("LessOrEqual", cut.unsqueeze(cut.positions(held), 1), cut.reshape(lengths.last, -1, 1, 1, 1))
        results = []
        for past in (node.input(3), node.input(4)):
            zero = cut.scalar(0, node.dtype(3, "past_key"))
            results.append(cut.op("Pad", cut.op("Where", is_held, past, zero), more))
        branches: dict[str, Any] = {
            "then_branch": kept.graph([kept.op("Identity", node.input(index)) for index in (3, 4)]),
            "else_branch": cut.graph(results),
        }
        return Cache(*new.op("If", _are_full(new, held, lengths), outputs=2, **branches))


def _has_past(node: Node) -> bool:
    """Whether the node has a past; refuses a key without value, and other heads than the node's."""
    past = [node.optional(3), node.optional(4)]
    if past == [None, None]:
        return False
    if None in past:
        node.refuse("CC0205", "GroupQueryAttention needs past_key and past_value together")
    for index, name in ((3, "past_key"), (4, "past_value")):
        node.rank(index, name, 4)
        if (found := node.known_size(index, 1)) not in (None, node.positive("kv_num_heads")):
            node.refuse("CC0210", f"GroupQueryAttention's input {name} has {found} heads")
    return True


def _are_full(new: Body, held: ir.Value, lengths: Lengths) -> ir.Value:
    """Whether every row's keys are all that the past holds."""
    shortest = new.op("Add", new.op("ReduceMin", lengths.last, new.numbers(0)), new.numbers(1))
    is_full = new.op("And", new.op("Equal", lengths.total, held), new.op("Equal", shortest, held))
    return new.op("Squeeze", is_full, new.numbers(0))


def _appended(new: Body, past: ir.Value, added: ir.Value, lengths: Lengths) -> ir.Value:
    """The past keys of each row, then the new ones, then zeros. A state writes the new ones in place."""
    inputs = (past, added, lengths.before, lengths.total)
    present = new.op("AppendRows", *inputs, domain=PLAN_DOMAIN, version=1)
    dims = None if past.shape is None else [None if axis == 2 else dim for axis, dim in enumerate(past.shape.dims)]
    return typed(present, past.type, None if dims is None else ir.Shape(dims))
