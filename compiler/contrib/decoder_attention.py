"""DecoderMaskedMultiHeadAttention: attention of one token."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, INT64, Body, Size
from compiler.contrib.expansion.decoding import Beams, Buffer
from compiler.contrib.expansion.heads import add_biases, attend, merge_heads, scale_of, split_heads
from compiler.contrib.expansion.mask import Scores, padding_mask, sum_of
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_MASK, _BIAS, _PAST, _LENGTH, _BEAM_WIDTH, _INDIRECTION, _BIASES = 3, 4, 5, 7, 8, 9, 10
"""The indices of the inputs `mask_index`, `attention_bias`, `past_key` and so on. `past_value` follows `past_key`."""


@expands("DecoderMaskedMultiHeadAttention")
def decoder_masked_multi_head_attention(node: Node, new: Body) -> list[ir.Value | None]:
    """`softmax(Q · Kᵀ · scale + masks) · V` for the query of one token, `[B, 1, D]`.

    Key and value belong to the same token, `[B, 1, D]` or `[B, N, 1, H]`, and follow the past in buffers
    `[B, N, M, H]`; or they are those of a cross attention, `[B, N, L, H]`, without past. Outputs: the result
    `[B, 1, D]`, the present key and value `[B, N, M, H]`, and the scores with masks `[B, N, 1, T]` if `output_qk` is 1.
    """
    node.dtype(0, "query", FLOAT, ir.DataType.FLOAT16)
    node.rank(0, "query", 3)
    node.check_sizes(0, "query", {1: 1})
    if node.optional(_MASK) is not None:
        node.rank(_MASK, "mask_index", 2)
    if None in (node.optional(1), node.optional(2)):
        node.refuse("CC0205", "DecoderMaskedMultiHeadAttention needs the inputs key and value")
    wants_scores, is_shared = node.flag("output_qk", False), node.flag("past_present_share_buffer", False)
    options: dict[str, Any] = {"outputs": 1, **scale_of(node)}
    if wants_scores and node.uses_output(3):
        options |= {"outputs": 4, "qk_matmul_output_mode": 2}
    past, beams = [node.optional(_PAST), node.optional(_PAST + 1)], _beams(node, new)
    if None in past and past != [None, None]:
        node.refuse("CC0205", "DecoderMaskedMultiHeadAttention needs past_key and past_value together")
    if is_shared is (None in past):
        form = "without" if is_shared else "with"
        reason = f"past_present_share_buffer is {int(is_shared)}, which is not supported {form} a past"
        node.refuse("CC0202", f"DecoderMaskedMultiHeadAttention's attribute {reason}")
    return _in_buffer(node, new, beams, options) if is_shared else _cross(node, new, options)


def _beams(node: Node, new: Body) -> Beams | None:
    """The beams, if the node has them."""
    indirection, width, known = node.optional(_INDIRECTION), node.optional(_BEAM_WIDTH), node.constant(_BEAM_WIDTH)
    if indirection is not None:
        node.rank(_INDIRECTION, "cache_indirection", 3)
        count: Size = 1 if width is None else new.reshape(new.op("Cast", width, to=INT64), 1)
        return Beams(indirection, count)
    if width is not None and (known is None or known.max(initial=1) > 1):
        node.refuse("CC0205", "DecoderMaskedMultiHeadAttention with beam_width needs the input cache_indirection")
    return None


def _in_buffer(node: Node, new: Body, beams: Beams | None, options: dict[str, Any]) -> list[ir.Value | None]:
    """Attention to the past and the token."""
    buffer = Buffer.read(node, new, _PAST, _LENGTH, 1)
    tokens = [node.input(0)]
    for index, name in ((1, "key"), (2, "value")):
        is_folded = node.rank(index, name, 3, 4) == 3
        width = buffer.heads * buffer.size
        shape = {1: 1, 2: width} if is_folded else {1: buffer.heads, 2: 1, 3: buffer.size}
        node.check_sizes(index, name, shape)
        tokens.append(node.input(index) if is_folded else new.reshape(node.input(index), 0, 1, width))
    scores = Scores(buffer.batch, 1, buffer.before, buffer.total, node.dtype(0, "query"))
    masks = [
        padding_mask(node, new, _MASK, "mask_index", scores, is_exact=beams is not None),
        buffer.bias(node, new, _BIAS, 1, beams),
    ]
    qkv = (split_heads(new, each, buffer.heads, 1) for each in add_biases(node, new, _BIASES, tuple(tokens)))
    y, *others = buffer.attend(new, tuple(qkv), sum_of(new, *masks), beams, **options)
    return [merge_heads(new, y), *others]


def _cross(node: Node, new: Body, options: dict[str, Any]) -> list[ir.Value | None]:
    """Attention to all keys, `[B, N, L, H]`. The bias of the keys and values has no effect, nor have the beams."""
    node.refuse_input(_BIAS, "attention_bias without a past")
    node.ignore(_LENGTH, _BEAM_WIDTH, _INDIRECTION)
    heads = node.positive("num_heads")
    size = node.split_size(0, "query", 2, heads)
    query = split_heads(new, add_biases(node, new, _BIASES, (node.input(0),))[0], heads, 1)
    keys = []
    for index, name in ((1, "key"), (2, "value")):
        is_token = node.rank(index, name, 3, 4) == 3
        node.check_sizes(index, name, {1: 1, 2: heads * size} if is_token else {1: heads, 3: size})
        keys.append(new.reshape(node.input(index), 0, heads, 1, size) if is_token else node.input(index))
    count: Size = 1 if node.rank(1, "key") == 3 else new.size(node.input(1), 2)
    scores = Scores(new.size(node.input(0), 0), 1, 0, count, node.dtype(0, "query"))
    mask = padding_mask(node, new, _MASK, "mask_index", scores)
    y, *others = attend(new, (query, keys[0], keys[1]), mask, **options)
    return [merge_heads(new, y), None, None, *others[2:]]
