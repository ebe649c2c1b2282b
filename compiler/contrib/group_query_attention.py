"""GroupQueryAttention: causal attention with a cache of keys and values."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body, Size
from compiler.contrib.expansion.heads import attend, merge_heads, scale_of, split_heads
from compiler.contrib.expansion.kv_cache import Cache, Lengths
from compiler.contrib.expansion.node import Node, expands
from compiler.contrib.expansion.stored_cache import storage

__all__: list[str] = []

_UNSUPPORTED = {14: "q_norm_weight", 15: "k_norm_weight", 16: "query_seqlens"}
"""The inputs that are refused: those of normalized queries and keys, and of padded chunks."""


@expands("GroupQueryAttention")
def group_query_attention(node: Node, new: Body) -> list[ir.Value | None]:
    """Causal attention of queries `[B, S, N · H]`, and keys and values `[B, S, Nk · H]`.

    A query may also hold its key and value, `[B, S, (N + 2 · Nk) · H]`. If key and value are empty, `[B, 0, Nk · H]`,
    the past also holds the keys and values of the queries: layers of Gemma share them in this way. Outputs: the result
    `[B, S, N · H]`, the present key and value (`kv_cache.py`), the scores (`qk_output` 1) or the weights (2)
    `[B, N, S, total]`.
    """
    node.dtype(0, "query", FLOAT, *HALVES)
    node.rank(0, "query", 3)
    _check(node)
    heads, kv_heads = node.positive("num_heads"), node.positive("kv_num_heads")
    query, key, value = _operands(node, new, heads, kv_heads)
    lengths = Lengths.read(node, new)
    node.ignore(7, 8, 9)  # only a rotary embedding reads them, and the attribute
    node.flag("rotary_interleaved", False)
    is_new = node.optional(1) is None or node.known_size(1, 1) != 0
    if node.flag("do_rotary", False):
        query, *rotated = _rotated(node, new, lengths, ((query, heads), *([(key, kv_heads)] if is_new else [])))
        key = rotated[0] if rotated else key
    q = split_heads(new, query, heads)
    form = storage(node, new, _query_heads(node))
    if is_new:
        k, v = (split_heads(new, each, kv_heads, lengths.queries) for each in (key, value))
        added = (k, v) if form is None else form.store(new, (k, v))
        cache = Cache.present(node, new, added, lengths)
    else:
        cache = Cache.shared(node, new, lengths)
    seen = cache if form is None else form.load(new, cache, lengths.total)
    y, scores = _attended(node, new, q, seen, lengths)
    return [merge_heads(new, y), cache.key, cache.value, scores]


def _check(node: Node) -> None:
    """Refuses nodes that onnxruntime's CPU provider refuses, and caches of a window."""
    for index, name in _UNSUPPORTED.items():
        node.refuse_input(index, name)
    node.choice("sliding_window_cache", 0)
    for name in ("qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon"):
        node.float(name, 0.0)  # without the weights of the norms, there are no norms


def _query_heads(node: Node) -> int:
    """The number of heads in the query, which may also hold its key and value."""
    heads = node.positive("num_heads")
    return heads if node.optional(1) is not None else heads + 2 * node.positive("kv_num_heads")


def _operands(node: Node, new: Body, heads: int, kv_heads: int) -> list[ir.Value]:
    """Q, K and V, `[B, S, heads · H]`."""
    if heads % kv_heads:
        node.refuse("CC0202", f"GroupQueryAttention's {heads} heads are no multiple of its {kv_heads} heads of keys")
    given = [node.optional(1), node.optional(2)]
    if None not in given:
        node.rank(1, "key", 3)
        node.rank(2, "value", 3)
        width = node.known_size(0, 2)
        node.check_sizes(1, "key", {2: None if width is None else width // heads * kv_heads})
        return [node.input(index) for index in range(3)]
    if given != [None, None]:
        node.refuse("CC0205", "GroupQueryAttention needs key and value together")
    size = node.split_size(0, "query", 2, _query_heads(node))
    return new.split(node.input(0), 2, heads * size, kv_heads * size, kv_heads * size)


def _rotated(node: Node, new: Body, lengths: Lengths, operands: tuple[tuple[ir.Value, int], ...]) -> list[ir.Value]:
    """The operands, given with their numbers of heads, after a rotary embedding of their positions.

    For the first prompt, onnxruntime reads only the first of `position_ids`. The other positions follow it.
    """
    places, columns = node.optional(9), new.positions(lengths.queries)
    if places is None:
        rows = new.op("Add", new.unsqueeze(lengths.before, 1), columns)
        places = new.op("Expand", rows, new.sizes(new.size(node.input(0), 0), 1))
    else:
        node.rank(9, "position_ids", 2)
        is_first = new.op("Equal", lengths.total, new.sizes(lengths.queries))
        first = new.slice(new.reshape(places, -1), 0, 0, 1)
        places = new.op("Where", is_first, new.op("Add", first, columns), places)
    options: dict[str, Any] = {
        "interleaved": int(node.flag("rotary_interleaved", False)),
        "rotary_embedding_dim": 2 * node.size(7, "cos_cache", 1),
    }
    tables = (node.input(7), node.input(8))
    return [new.op("RotaryEmbedding", each, *tables, places, num_heads=heads, **options) for each, heads in operands]


def _attended(node: Node, new: Body, q: ir.Value, cache: Cache, lengths: Lengths) -> tuple[ir.Value, ir.Value | None]:
    """Attention to the visible keys, `[B, N, S, H]`, and the scores or weights `[B, N, S, total]` if asked."""
    bias, sink = node.optional(10), node.optional(11)
    dtype = node.dtype(0, "query")
    keys = lengths.total if bias is None else _width(new, bias)
    visible = _visible(node, new, lengths, keys)
    mask, key, value = visible, cache.key, cache.value
    is_smooth = node.int("smooth_softmax", -1) == 1 or sink is not None
    if bias is not None or is_smooth:
        shown = new.scalar(0, dtype) if bias is None else bias
        mask = new.op("Where", mask, shown, new.scalar(float("-inf"), dtype))
    if is_smooth:
        mask = _with_sink(node, new, mask, lengths)
        key, value = (_with_zero(new, each, keys, dtype) for each in (key, value))
    options: dict[str, Any] = {**scale_of(node), "softcap": node.float("softcap", 0.0)}
    kind = node.choice("qk_output", 0, 1, 2)
    if not kind or not node.uses_output(3):
        return attend(new, (q, key, value), mask, **options)[0], None
    y, *_, scores = attend(new, (q, key, value), mask, outputs=4, qk_matmul_output_mode=kind + 1, **options)
    scores = new.slice(scores, 3, 0, lengths.total)
    if kind == 1:
        scores = new.op("Where", new.slice(visible, 3, 0, lengths.total), scores, new.scalar(0, dtype))
    return y, scores


def _visible(node: Node, new: Body, lengths: Lengths, keys: Size) -> ir.Value:
    """Whether a query sees a key, `[B, 1, S, keys]`.

    A query sees the keys of its row up to its own one, or only the last of them, the window. If the attention is not
    causal, every query sees all keys. A prompt may pad a row: for a query after the last key, the window ends at the
    query in onnxruntime's flash attention, and at the last key in its other kernel.
    """
    is_causal, window = node.flag("causal", True), node.int("local_window_size", -1)
    if window == 0 or window < -1 or (window > 0 and not is_causal):
        node.refuse("CC0202", f"GroupQueryAttention's attribute local_window_size is {window}, and causal {is_causal}")
    last, before = (new.reshape(each, -1, 1, 1, 1) for each in (lengths.last, lengths.before))
    columns = new.positions(keys)
    if not is_causal:
        return new.op("Expand", new.op("LessOrEqual", columns, last), new.sizes(1, 1, lengths.queries, 1))
    places = new.op("Add", before, new.unsqueeze(new.positions(lengths.queries), 1))
    ends = new.op("Min", places, last)
    visible = new.op("LessOrEqual", columns, ends)
    if window > 0:
        first = new.op("Sub", places if _is_flash(node) else ends, new.numbers(window))
        visible = new.op("And", visible, new.op("Greater", columns, first))
    return visible


def _is_flash(node: Node) -> bool:
    """Whether onnxruntime's CPU provider uses flash attention."""
    if node.dtype(0, "query") != FLOAT or node.int("smooth_softmax", -1) == 1 or node.optional(11) is not None:
        return False
    return node.float("softcap", 0.0) <= 0 and node.int("qk_output", 0) == 0


def _width(new: Body, bias: ir.Value) -> Size:
    known = None if bias.shape is None else bias.shape[-1]
    return known if isinstance(known, int) else new.op("Shape", bias, start=3)


def _with_sink(node: Node, new: Body, mask: ir.Value, lengths: Lengths) -> ir.Value:
    """The mask `[B, N, S, keys + 1]`. Its last column is the score of the sink of the softmax, or 0 without one."""
    sink, dtype = node.optional(11), node.dtype(0, "query")
    score = new.scalar(0, dtype) if sink is None else new.reshape(sink, 1, -1, 1, 1)
    sizes = new.sizes(new.size(node.input(0), 0), node.positive("num_heads"), lengths.queries, 1)
    return new.joined(new.op("Expand", mask, sizes), new.op("Expand", score, sizes), axis=3)


def _with_zero(new: Body, value: ir.Value, keys: Size, dtype: ir.DataType) -> ir.Value:
    """The first keys or values, and a zero vector, which belongs to the sink."""
    pads = new.numbers(0, 0, 0, 0, 0, 0, 1, 0)
    return new.op("Pad", new.slice(value, 2, 0, keys), pads, new.scalar(0, dtype))
