"""Attention and QAttention, which also multiply by the weights of the queries, keys and values."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body
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
    for name in ("do_rotary", "past_present_share_buffer"):
        node.choice(name, 0)
    node.int("rotary_embedding_dim", 0)  # only a rotary embedding reads it
    node.ignore(6)  # the number of keys in a buffer
    return _attended(node, new, dtype, _projected(node, new, heads), mask=3, past=4, term=5)


@expands("QAttention")
def qattention(node: Node, new: Body) -> list[ir.Value]:
    """Attention of `Q, K, V = (input - its zero) · (weights - their zero) · scales + bias`, for codes `[B, S, D]`.

    The scale and the zero point of the weights are single numbers, or lists with a number for each column.
    """
    node.dtype(0, "input", ir.DataType.UINT8)
    node.dtype(1, "weight", ir.DataType.UINT8, ir.DataType.INT8)
    node.rank(0, "input", 3)
    heads = node.positive("num_heads")
    node.choice("do_rotary", 0)
    node.choice("past_present_share_buffer", 0)
    zeros = [None if (zero := node.optional(index)) is None else new.reshape(zero, -1) for index in (6, 7)]
    zeros[0] = None if zeros[0] is None else new.op("Squeeze", zeros[0], new.numbers(0))
    product = new.op("MatMulInteger", node.input(0), node.input(1), *zeros)
    scale = new.op("Mul", new.reshape(node.input(3), -1), new.reshape(node.input(4), -1))
    whole = new.op("Add", new.op("Mul", new.op("Cast", product, to=FLOAT), scale), node.input(2))
    width = node.split_size(1, "weight", 1, 3)
    if width % heads:
        node.refuse("CC0202", f"QAttention's width {width} does not fit {heads} heads")
    return _attended(node, new, FLOAT, new.split(whole, 2, width, width, width), mask=5, past=8)


def _attended(
    node: Node, new: Body, dtype: ir.DataType, qkv: list[ir.Value], *, mask: int, past: int, term: int | None = None
) -> list[ir.Value]:
    """Attention of Q, K and V. The mask, the past and the term of the scores are inputs with these indices."""
    q, k, v = qkv
    before = 0 if node.optional(past) is None else new.size(node.input(past), 3)
    queries = new.size(node.input(0), 1)
    scores = Scores(new.size(node.input(0), 0), queries, before, new.plus(before, queries), dtype)
    is_causal, _ = causal_terms(node, new, scores, is_square=True)
    bias = None if term is None else node.optional(term)
    hidden = sum_of(new, padding_mask(node, new, mask, "mask_index", scores), bias)
    heads = node.positive("num_heads")
    options: dict[str, Any] = {"q_num_heads": heads, "kv_num_heads": heads, "is_causal": is_causal, **scale_of(node)}
    cache = _past(node, new, past)
    if not node.uses_output(1):
        return attend(new, (q, k, v), hidden, *cache, **options)
    y, *present = attend(new, (q, k, v), hidden, *cache, outputs=3, **options)
    return [y, new.joined(*(new.unsqueeze(each, 0) for each in present))]


def _projected(node: Node, new: Body, heads: int) -> list[ir.Value]:
    """Q, K and V, `[B, S, N · H]`."""
    widths = node.ints("qkv_hidden_sizes", None) or [node.split_size(1, "weights", 1, 3)] * 3
    if len(widths) != 3 or widths[0] != widths[1] or any(width < 1 or width % heads for width in widths):
        node.refuse("CC0202", f"Attention's attribute qkv_hidden_sizes {widths} does not fit {heads} heads")
    if widths[2] != widths[1] and node.uses_output(1):
        node.refuse("CC0202", f"Attention's output present cannot hold keys and values of the widths {widths[1:]}")
    product = new.op("MatMul", node.input(0), node.input(1))
    return new.split(new.total(product, node.optional(2)), 2, *widths)


def _past(node: Node, new: Body, index: int) -> list[ir.Value | None]:
    """The past key and value `[B, N, P, H]` of the input `[2, B, N, P, H]`."""
    past = node.optional(index)
    if past is None:
        return [None, None]
    node.rank(index, "past", 5)
    return [new.op("Squeeze", each, new.numbers(0)) for each in new.split(past, 0, 1, 1)]
