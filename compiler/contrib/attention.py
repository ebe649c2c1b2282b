"""Attention, which also multiplies by the weights of the queries, keys and values."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body, Size
from compiler.contrib.expansion.heads import attend, scale_of
from compiler.contrib.expansion.mask import Scores, causal_terms, padding_mask, sum_of
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []


@expands("Attention")
def attention(node: Node, new: Body) -> list[ir.Value]:
    """Attention of `Q, K, V = input · weights + bias`, for an input `[B, S, D]`.

    Outputs: the result `[B, S, Dv]`; the present keys and values `[2, B, N, T, H]`, which begin with the past ones.
    """
    dtype = node.dtype(0, "input", FLOAT, *HALVES)
    node.rank(0, "input", 3)
    heads = node.positive("num_heads")
    node.choice("do_rotary", 0)
    node.choice("rotary_embedding_dim", 0)
    node.choice("past_present_share_buffer", 0)
    node.refuse_input(6, "past_sequence_length")
    x = node.input(0)
    q, k, v = _projected(node, new, heads)
    past, before = _past(node, new)
    queries = new.size(x, 1)
    scores = Scores(new.size(x, 0), queries, before, new.plus(before, queries), dtype)
    is_causal, _ = causal_terms(node, new, scores, is_square=True)
    mask = sum_of(new, padding_mask(node, new, 3, "mask_index", scores), node.optional(5))
    options: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": heads, "is_causal": is_causal, **scale_of(node)}
    if not node.uses_output(1):
        return attend(new, (q, k, v), mask, *past, **options)
    y, *present = attend(new, (q, k, v), mask, *past, outputs=3, **options)
    return [y, new.joined(*(new.unsqueeze(each, 0) for each in present))]


def _projected(node: Node, new: Body, heads: int) -> list[ir.Value]:
    """Q, K and V, `[B, S, N · H]`."""
    widths = node.ints("qkv_hidden_sizes", None) or [node.split_size(1, "weights", 1, 3)] * 3
    if len(widths) != 3 or widths[0] != widths[1] or any(width < 1 or width % heads for width in widths):
        node.refuse("CC0202", f"Attention's attribute qkv_hidden_sizes {widths} does not fit {heads} heads")
    product = new.op("MatMul", node.input(0), node.input(1))
    return new.split(new.total(product, node.optional(2)), 2, *widths)


def _past(node: Node, new: Body) -> tuple[list[ir.Value | None], Size]:
    """The past key and value `[B, N, P, H]`, and P."""
    past = node.optional(4)
    if past is None:
        return [None, None], 0
    node.rank(4, "past", 5)
    key_and_value = new.split(past, 0, 1, 1)
    return [new.op("Squeeze", each, new.numbers(0)) for each in key_and_value], new.size(past, 3)
