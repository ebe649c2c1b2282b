"""MultiHeadAttention."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import END, FLOAT, HALVES, Body, Size
from compiler.contrib.expansion.heads import attend, merge_heads, scale_of, split_heads
from compiler.contrib.expansion.mask import Scores, causal_terms, padding_mask, sum_of
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_Triple = tuple[ir.Value, ir.Value, ir.Value]


@expands("MultiHeadAttention")
def multi_head_attention(node: Node, new: Body) -> list[ir.Value]:
    """`softmax(Q · Kᵀ · scale + masks) · V` for Q `[B, S, D]`, and K and V `[B, L, D]` or `[B, N, L, H]`.

    K may hold V too, `[B, L, N, 2, H]`, and Q both, `[B, S, N, 3, H]`. Outputs: the result `[B, S, D]`, the present key
    and value `[B, N, T, H]`, the scores with masks `[B, N, S, T]`.
    """
    dtype = node.dtype(0, "query", FLOAT, *HALVES)
    heads = node.positive("num_heads")
    node.refuse_input(8, "past_sequence_length")
    node.refuse_input(9, "cache_indirection")
    qkv = _operands(node, new, heads)
    is_folded = node.rank(0, "query") == 3 and node.rank(1, "key") == 3
    past = [node.optional(6), node.optional(7)]
    if past.count(None) == 1:
        node.refuse("CC0205", "MultiHeadAttention needs past_key and past_value together")
    before: Size = 0 if past[0] is None else new.size(past[0], 2)
    keys = _keys(node, new)
    scores = Scores(new.size(node.input(0), 0), new.size(node.input(0), 1), before, new.plus(before, keys), dtype)
    masks = [padding_mask(node, new, 4, "key_padding_mask", scores), node.optional(5)]
    is_causal, causal = causal_terms(node, new, scores, is_square=_is_square(node))
    options: dict[str, Any] = {"is_causal": is_causal, **scale_of(node)}
    if is_folded:
        options |= {"q_num_heads": heads, "kv_num_heads": heads}
    if node.uses_output(3):
        if is_causal or causal:
            node.refuse("CC0205", "MultiHeadAttention's output qk is not supported with the attribute unidirectional")
        options["qk_matmul_output_mode"] = 2
    mask = sum_of(new, *masks, causal)
    wanted = max(index + 1 for index in range(4) if index == 0 or node.uses_output(index))
    y, *others = attend(new, qkv, mask, *past, outputs=wanted, **options)
    return [y if is_folded else merge_heads(new, y), *others]


def _is_square(node: Node) -> bool:
    """Whether there are as many new keys as queries, for certain."""
    key = node.optional(1)
    if key is None:
        return True
    shapes = [node.input(0).shape, key.shape]
    queries, keys = (shape[axis] for shape, axis in zip(shapes, (1, _key_axis(node)), strict=True) if shape)
    return queries == keys and (isinstance(queries, int) or queries.value is not None)


def _key_axis(node: Node) -> int:
    return 2 if node.rank(1, "key") == 4 else 1


def _keys(node: Node, new: Body) -> Size:
    """The number of new keys."""
    if node.optional(1) is None:
        return new.size(node.input(0), 1)
    return new.size(node.input(1), _key_axis(node))


def _operands(node: Node, new: Body, heads: int) -> _Triple:
    """Q, K and V: all as `[B, S, N · H]`, or all as `[B, N, S, H]`."""
    query, key, value = node.input(0), node.optional(1), node.optional(2)
    q_rank = node.rank(0, "query", 3, 5)
    if q_rank == 5:
        return _packed(node, new)
    if key is None:
        node.refuse("CC0205", "MultiHeadAttention needs a key for a query of three dimensions")
    k_rank = node.rank(1, "key", 3, 4, 5)
    if k_rank == 3:
        if value is None:
            node.refuse("CC0205", "MultiHeadAttention needs a value for a key of three dimensions")
        node.rank(2, "value", 3)
        q, k, v = _biased(node, new, (query, key, value))
        return q, k, v
    if k_rank == 5:
        if node.optional(3) is not None or value is not None:
            node.refuse("CC0205", "MultiHeadAttention's key of five dimensions excludes the inputs bias and value")
        key, value = _unpacked(new, key, 2)
    elif value is None:
        node.refuse("CC0205", "MultiHeadAttention's input value is missing")
    else:
        node.rank(2, "value", 4)
        query = _biased(node, new, (query,))[0]
    return split_heads(new, query, heads), key, value


def _packed(node: Node, new: Body) -> _Triple:
    if node.optional(1) is not None or node.optional(2) is not None:
        node.refuse("CC0205", "MultiHeadAttention's query of five dimensions also holds key and value")
    if node.optional(3) is not None:
        node.refuse("CC0205", "MultiHeadAttention's input bias is not supported with a query of five dimensions")
    q, k, v = _unpacked(new, node.input(0), 3)
    return q, k, v


def _unpacked(new: Body, value: ir.Value, count: int) -> list[ir.Value]:
    """`[B, S, N, count, H]` → `count` values `[B, N, S, H]`."""
    pieces = new.split(new.transpose(value, 3, 0, 2, 1, 4), 0, *[1] * count)
    return [new.op("Squeeze", each, new.numbers(0)) for each in pieces]


def _biased(node: Node, new: Body, values: tuple[ir.Value, ...]) -> tuple[ir.Value, ...]:
    """Q, K and V of three dimensions, or only Q, plus their slices of the bias `[D + D + Dv]`."""
    bias = node.optional(3)
    if bias is None:
        return values
    width = node.size(0, "query", 2)
    slices = (new.slice(bias, 0, start, end) for start, end in pairwise((0, width, 2 * width, END)))
    return tuple(new.op("Add", value, each) for value, each in zip(values, slices, strict=False))
