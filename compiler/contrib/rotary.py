"""RotaryEmbedding."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []


@expands("RotaryEmbedding")
def rotary_embedding(node: Node, new: Body) -> ir.Value:
    """`RotaryEmbedding` of `[B, S, N · H]` or `[B, N, S, H]`.

    A single position is the position of the first query, and the other queries follow it.
    """
    node.flag("is_packed_batching", False)  # it only allows more positions than the tables have
    node.float("scale", 1.0)  # onnxruntime reads it, but does not use it
    node.dtype(0, "input", FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
    x, places, rank = node.input(0), node.input(1), node.rank(0, "input", 3, 4)
    options: dict[str, Any] = {
        "interleaved": int(node.flag("interleaved", False)),
        "rotary_embedding_dim": _rotated(node),
    }
    heads = _heads(node)
    if rank == 3:
        options["num_heads"] = heads
    if node.rank(1, "position_ids", 1, 2) == 1:
        queries = new.size(x, rank - 2)
        row = new.op("Add", places, new.positions(queries))
        places = new.op("Expand", row, new.sizes(new.size(x, 0), queries))
    y: ir.Value = new.op("RotaryEmbedding", x, node.input(2), node.input(3), places, **options)
    return y


def _rotated(node: Node) -> int:
    """The number of rotated elements of a head; 0 if all are."""
    size = node.int("rotary_embedding_dim", 0)
    if size < 0 or (size > 0 and node.int("num_heads", 0) < 1):
        node.refuse("CC0202", f"{node.op_type}'s attribute rotary_embedding_dim is {size}, but num_heads is missing")
    return size


def _heads(node: Node) -> int:
    """The number of heads; without the attribute, it follows from the size of the tables."""
    heads = node.int("num_heads", 0)
    if heads > 0 or node.rank(0, "input") == 4:
        return heads
    return node.split_size(0, "input", 2, 2 * node.split_size(2, "cos_cache", 1, 1))
