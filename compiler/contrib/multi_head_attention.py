"""MultiHeadAttention."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body, Size
from compiler.contrib.expansion.decoding import Beams, Buffer
from compiler.contrib.expansion.heads import add_biases, attend, merge_heads, scale_of, split_heads
from compiler.contrib.expansion.mask import Scores, causal_terms, padding_mask, sum_of
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_Triple = tuple[ir.Value, ir.Value, ir.Value]
_LENGTH, _INDIRECTION = 8, 9
"""The indices of the inputs `past_sequence_length` and `cache_indirection`."""


@expands("MultiHeadAttention")
def multi_head_attention(node: Node, new: Body) -> list[ir.Value]:
    """`softmax(Q · Kᵀ · scale + masks) · V` for Q `[B, S, D]`, and K and V `[B, L, D]` or `[B, N, L, H]`.

    K may hold V too, `[B, L, N, 2, H]`, and Q both, `[B, S, N, 3, H]`. Outputs: the result `[B, S, D]`, the present key
    and value `[B, N, T, H]`, the scores with masks `[B, N, S, T]`. With `past_sequence_length`, past and present are
    buffers `[B, N, M, H]`. The input `cache_indirection` only has an effect if there is one query, as in onnxruntime.
    """
    dtype = node.dtype(0, "query", FLOAT, *HALVES)
    heads = node.positive("num_heads")
    qkv = _operands(node, new, heads)
    is_folded = node.rank(0, "query") == 3 and node.rank(1, "key") == 3
    past = [node.optional(6), node.optional(7)]
    if past.count(None) == 1:
        node.refuse("CC0205", "MultiHeadAttention needs past_key and past_value together")
    if past[0] is not None and node.optional(_LENGTH) is not None:
        return _in_buffer(node, new, qkv)
    node.ignore(_LENGTH, _INDIRECTION)
    before: Size = 0 if past[0] is None else new.size(past[0], 2)
    keys = _keys(node, new)
    scores = Scores(new.size(node.input(0), 0), new.size(node.input(0), 1), before, new.plus(before, keys), dtype)
    masks = [padding_mask(node, new, 4, "key_padding_mask", scores), node.optional(5)]
    mask, options = _options(node, new, scores, masks)
    if is_folded:
        options |= {"q_num_heads": heads, "kv_num_heads": heads}
    wanted = max(index + 1 for index in range(4) if index == 0 or node.uses_output(index))
    y, *others = attend(new, qkv, mask, *past, outputs=wanted, **options)
    return [y if is_folded else merge_heads(new, y), *others]


def _options(
    node: Node, new: Body, scores: Scores, masks: list[ir.Value | None]
) -> tuple[ir.Value | None, dict[str, Any]]:
    """The mask and the attributes of Attention."""
    is_causal, causal = causal_terms(node, new, scores, is_square=_is_square(node))
    options: dict[str, Any] = {"is_causal": is_causal, **scale_of(node)}
    if node.uses_output(3):
        if is_causal or causal:
            node.refuse("CC0205", "MultiHeadAttention's output qk is not supported with the attribute unidirectional")
        options["qk_matmul_output_mode"] = 2
    return sum_of(new, *masks, causal), options


def _in_buffer(node: Node, new: Body, qkv: _Triple) -> list[ir.Value]:
    """Attention to a past in buffers, which also get the new keys and values."""
    if node.rank(0, "query") != 3 or node.rank(1, "key") != 3:
        node.refuse("CC0205", "MultiHeadAttention with past_sequence_length needs Q, K and V of three dimensions")
    for index, name in ((1, "key"), (2, "value")):
        node.check_sizes(index, name, {2: node.known_size(0, 2)})
    buffer, beams = Buffer.read(node, new, 6, _LENGTH, _keys(node, new)), _beams(node, new)
    queries = new.size(node.input(0), 1)
    scores = Scores(buffer.batch, queries, buffer.before, buffer.total, node.dtype(0, "query"))
    is_exact = False if beams is None else beams.is_used
    masks = [
        padding_mask(node, new, 4, "key_padding_mask", scores, is_exact=is_exact),
        buffer.bias(node, new, 5, queries, beams),
    ]
    mask, options = _options(node, new, scores, masks)
    split = tuple(split_heads(new, each, buffer.heads) for each in qkv)
    y, *others = buffer.attend(new, split, mask, beams, outputs=4 if node.uses_output(3) else 1, **options)
    return [merge_heads(new, y), *others]


def _beams(node: Node, new: Body) -> Beams | None:
    """The beams, if the node has them and they may have an effect."""
    indirection = node.optional(_INDIRECTION)
    if indirection is None:
        return None
    node.rank(_INDIRECTION, "cache_indirection", 3)
    queries = new.size(node.input(0), 1)
    has_rows = node.optional(4) is None or node.rank(4, "key_padding_mask") == 2
    if not has_rows or (isinstance(queries, int) and queries != 1):
        return None
    is_used = new.op("Equal", queries, new.numbers(1)) if isinstance(queries, ir.Value) else True
    return Beams(indirection, new.size(indirection, 1), is_used)


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
        q, k, v = add_biases(node, new, 3, (query, key, value))
        return q, k, v
    if k_rank == 5:
        if node.optional(3) is not None or value is not None:
            node.refuse("CC0205", "MultiHeadAttention's key of five dimensions excludes the inputs bias and value")
        key, value = _unpacked(new, key, 2)
    elif value is None:
        node.refuse("CC0205", "MultiHeadAttention's input value is missing")
    else:
        node.rank(2, "value", 4)
        query = add_biases(node, new, 3, (query,))[0]
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
