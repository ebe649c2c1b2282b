"""Attention to keys and values in a buffer, which holds the past ones and gets the new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import INT64, Body, Size
from compiler.contrib.expansion.heads import attend
from compiler.contrib.expansion.node import Node

__all__ = ["Beams", "Buffer"]

_NOWHERE = -(1 << 62)
"""The place of a vector that does not exist. To read it is an error."""


@dataclass(frozen=True)
class Buffer:
    """Keys and values, each `[B, N, M, H]`. The first `before` of the M are the past ones, and the new ones follow."""

    past: tuple[ir.Value, ir.Value]
    batch: Size
    heads: int
    size: int
    """H."""
    held: Size
    """M."""
    before: ir.Value
    """`int64 [1]`."""
    added: Size
    """The number of new keys."""
    total: ir.Value
    """`int64 [1]`: `before + added`."""

    @staticmethod
    def read(node: Node, new: Body, past: int, length: int, added: Size) -> Buffer:
        """The buffers in the input `past` and the next one, and the number of past keys in the input `length`."""
        heads = node.positive("num_heads")
        size = node.split_size(0, "query", 2, heads)
        for index, name in ((past, "past_key"), (past + 1, "past_value")):
            node.rank(index, name, 4)
            node.check_sizes(index, name, {1: heads, 3: size})
        before = new.reshape(new.op("Cast", node.input(length), to=INT64), 1)
        total = new.op("Add", before, new.sizes(added))
        batch, held = new.size(node.input(0), 0), new.size(node.input(past), 2)
        return Buffer((node.input(past), node.input(past + 1)), batch, heads, size, held, before, added, total)

    def bias(self, node: Node, new: Body, index: int, queries: Size, beams: Beams | None) -> ir.Value | None:
        """The attention bias `[1 or B, 1 or N, S, T]` in this input, if the node has it."""
        bias = node.optional(index)
        if bias is None:
            return None
        node.rank(index, "attention_bias", 4)
        if beams is not None:
            bias = beams.bias(node, new, index, self)
        return new.reshape(bias, 0, 0, queries, self.total)

    def attend(
        self, new: Body, qkv: tuple[ir.Value, ...], mask: ir.Value | None, beams: Beams | None, **options: Any
    ) -> list[ir.Value]:
        """The outputs of Attention for new Q, K and V `[B, N, S, H]`: Y, the filled buffers, scores `[B, N, S, T]`."""
        query, *added = qkv
        places = new.op("Expand", self.before, new.sizes(self.batch))
        pairs = zip(self.past, added, strict=True)
        key, value = presents = [new.op("TensorScatter", *pair, places, axis=2) for pair in pairs]
        if beams is not None:
            key, value = beams.gather(new, presents, self)
        visible = new.op("Expand", self.total, new.sizes(self.batch))
        y, *others = attend(new, (query, key, value), mask, None, None, visible, **options)
        return [y, *presents, *(new.slice(each, 3, 0, self.total) for each in others[2:])]


@dataclass(frozen=True)
class Beams:
    """The rows of a batch are groups of `width` beams. A row takes each past key from the same or another beam."""

    indirection: ir.Value
    """The beam of each past key, `[B / width, width, M]`."""
    width: Size
    is_used: ir.Value | bool = True
    """Whether a run uses the beams, `bool [1]`. Otherwise, a row takes its own past."""

    def gather(self, new: Body, presents: list[ir.Value], buffer: Buffer) -> list[ir.Value]:
        """The keys and values `[B, N, T, H]` of each row."""
        places = self._places(new, buffer)
        return [new.op("Gather", new.reshape(each, -1, buffer.size), places, axis=0) for each in presents]

    def _places(self, new: Body, buffer: Buffer) -> ir.Value:
        """The places `int64 [B, N, T]` of each row's keys among the `B · N · M` vectors of a buffer."""
        width, rows = new.sizes(self.width), new.unsqueeze(new.positions(buffer.batch), 1)
        own = new.op("Mod", rows, width)
        beams = new.reshape(new.op("Cast", self.indirection, to=INT64), buffer.batch, buffer.held)
        beams = self._if_used(new, new.slice(beams, 1, 0, buffer.before), own)
        beams = new.op("Concat", beams, new.op("Expand", own, new.sizes(1, buffer.added)), axis=1)
        exists = new.op("And", new.op("GreaterOrEqual", beams, new.numbers(0)), new.op("Less", beams, width))
        exists = new.op("And", exists, new.op("Equal", width, new.op("Shape", self.indirection, start=1, end=2)))
        rows = new.op("Add", new.op("Sub", rows, own), beams)
        heads = new.unsqueeze(new.positions(buffer.heads), 1)
        vectors = new.op("Add", new.op("Mul", new.unsqueeze(rows, 1), new.numbers(buffer.heads)), heads)
        places = new.op("Add", new.op("Mul", vectors, new.sizes(buffer.held)), new.positions(buffer.total))
        return new.op("Where", new.unsqueeze(exists, 1), places, new.numbers(_NOWHERE))

    def bias(self, node: Node, new: Body, index: int, buffer: Buffer) -> ir.Value:
        """The attention bias in this input, for each row. As in onnxruntime, the rows of group g take that of row g."""
        bias, one_head = node.input(index), node.known_size(index, 1) == 1 and buffer.heads > 1
        if node.known_size(index, 0) == 1:
            return bias
        if one_head and buffer.batch != self.width:
            node.refuse("CC0205", f"{node.op_type}'s attention_bias of one head needs a batch of 1 if there are beams")
        rows = new.positions(buffer.batch)
        groups = self._if_used(new, new.op("Div", rows, new.sizes(self.width)), rows)
        last = new.op("Sub", new.op("Shape", bias, start=0, end=1), new.numbers(1))
        return new.op("Gather", bias, new.op("Min", groups, last), axis=0)

    def _if_used(self, new: Body, value: ir.Value, other: ir.Value) -> ir.Value:
        return value if isinstance(self.is_used, bool) else new.op("Where", self.is_used, value, other)
