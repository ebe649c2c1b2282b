"""Normalization over the last axis: SkipLayerNormalization and its relatives."""

from __future__ import annotations

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, HALVES, Body
from compiler.contrib.expansion.node import Node, expands
from compiler.ir.views.quantize import CODES

__all__: list[str] = []

_FLOATS = (FLOAT, ir.DataType.DOUBLE, *HALVES)
_Results = tuple[ir.Value | None, ...]


@expands("SimplifiedLayerNormalization", domain="")
def simplified_layer_normalization(node: Node, new: Body) -> _Results:
    """`X · r · scale` with `r = 1 / √(mean(X²) + epsilon)` over the axes from `axis`. Outputs: the result, and r.

    onnxruntime defines this operator in the standard domain. The result has the type of the scale.
    """
    node.choice("stash_type", 1)
    x, scale = node.dtype(0, "X", *_FLOATS), node.dtype(1, "scale", *_FLOATS)
    dtype = x if x == scale else ir.DataType.DOUBLE if ir.DataType.DOUBLE in (x, scale) else FLOAT
    upcast, factor = (new.cast(node.input(index), dtype) for index in range(2))
    axis, epsilon = node.int("axis", -1), node.float("epsilon", 1e-5)
    y = new.op("RMSNormalization", upcast, factor, axis=axis, epsilon=epsilon)
    return new.cast(y, scale, dtype), _inverse(node, new, new.upcast(node.input(0)), axis, epsilon, 1)


@expands("SkipLayerNormalization")
def skip_layer_normalization(node: Node, new: Body) -> _Results:
    """`LayerNormalization(input + skip + bias)`. The skip may lack the batch axis, or have one batch.

    Outputs: the result, the mean, the inverse standard deviation, the sum.
    """
    dtype, total = _sum(node, new, 4)
    beta, epsilon = node.optional(3), node.float("epsilon", 1e-12)
    scales = (new.upcast(node.input(2)), beta and new.upcast(beta))
    count = 3 if node.uses_output(1) or node.uses_output(2) else 1
    y, *statistics = new.op("LayerNormalization", total, *scales, axis=-1, epsilon=epsilon, outputs=count)
    return _downcast(new, y, dtype), *(statistics or (None, None)), _total(node, new, 3, total, dtype)


@expands("SkipSimplifiedLayerNormalization")
def skip_simplified_layer_normalization(node: Node, new: Body) -> _Results:
    """`RMSNormalization(input + skip + bias)`.

    Outputs: the result, nothing, the inverse root of the mean square, the sum.
    """
    dtype, total = _sum(node, new, 3)
    epsilon = node.float("epsilon", 1e-12)
    y = new.op("RMSNormalization", total, new.upcast(node.input(2)), axis=-1, epsilon=epsilon)
    return (
        _downcast(new, y, dtype),
        None,
        _inverse(node, new, total, -1, epsilon, 2),
        _total(node, new, 3, total, dtype),
    )


def _sum(node: Node, new: Body, bias: int) -> tuple[ir.DataType, ir.Value]:
    """The type of the input, and the sum of the input, the skip and the bias, in float32 or wider."""
    dtype = node.dtype(0, "input", *_FLOATS)
    node.check_rank(0, "input", 2, 3)
    node.check_rank(1, "skip", 2, 3)
    others = (node.input(1), node.optional(bias))
    return dtype, new.total(new.upcast(node.input(0)), *(value and new.upcast(value) for value in others))


def _downcast(new: Body, value: ir.Value, dtype: ir.DataType) -> ir.Value:
    """A value that was computed in float32 or wider, in the type of the input."""
    return new.cast(value, dtype, FLOAT if dtype in HALVES else dtype)


def _total(node: Node, new: Body, index: int, total: ir.Value, dtype: ir.DataType) -> ir.Value | None:
    """The sum as an output of the node; `None` if no node reads it."""
    return _downcast(new, total, dtype) if node.uses_output(index) else None


def _inverse(node: Node, new: Body, x: ir.Value, axis: int, epsilon: float, output: int) -> ir.Value | None:
    """`1 / √(mean(x²) + epsilon)` over the axes from `axis`, which keep the size 1. `None` if no node reads it."""
    if not node.uses_output(output):
        return None
    axes = range(axis, node.rank(0, "input") if axis >= 0 else 0)
    square = new.op("ReduceMean", new.op("Mul", x, x), new.numbers(*axes))
    dtype = node.dtype(0, "input")
    small = new.scalar(epsilon, FLOAT if dtype in HALVES else dtype)
    return new.op("Reciprocal", new.op("Sqrt", new.op("Add", square, small)))


@expands("EmbedLayerNormalization")
def embed_layer_normalization(node: Node, new: Body) -> _Results:
    """`LayerNormalization` of the sum of a word's, a position's and a segment's embedding.

    Outputs: the result `[B, S, H]`; the number of ones of each row of the mask, `int32 [B]`; the sum `[B, S, H]`.
    """
    ids, dtype = node.input(0), node.dtype(2, "word_embedding", *_FLOATS)
    node.rank(0, "input_ids", 2)
    node.choice("mask_index_type", 0, 1)
    places = node.optional(8)
    if places is None:
        places = new.positions(new.size(ids, 1))
    segments, segment_table = node.optional(1), node.optional(4)
    if (segments is None) != (segment_table is None):
        node.refuse("CC0205", f"{node.op_type} needs segment_ids and segment_embedding together")
    tables = [(node.input(2), ids), (node.input(3), places)]
    if segments is not None and segment_table is not None:
        tables.append((segment_table, segments))
    compute = FLOAT if dtype in HALVES else dtype
    rows = [new.cast(new.op("Gather", table, indices), compute, dtype) for table, indices in tables]
    total = new.total(rows[0], *rows[1:])
    scales = (new.upcast(node.input(index)) for index in (5, 6))
    y = new.op("LayerNormalization", total, *scales, axis=-1, epsilon=node.float("epsilon", 1e-12))
    return _downcast(new, y, dtype), _ones(node, new), _total(node, new, 2, total, dtype)


def _ones(node: Node, new: Body) -> ir.Value | None:
    """The number of ones of each row of the mask; zeros without a mask."""
    ids, mask = node.input(0), node.optional(7)
    if not node.uses_output(1):
        return None
    if mask is None:
        return new.op("Expand", new.scalar(0, ir.DataType.INT32), new.sizes(new.size(ids, 0)))
    is_one = new.op("Equal", mask, new.scalar(1, mask.dtype or ir.DataType.INT32))
    return new.op("ReduceSum", new.op("Cast", is_one, to=ir.DataType.INT32), new.numbers(1), keepdims=0)


@expands("QEmbedLayerNormalization")
def q_embed_layer_normalization(node: Node, new: Body) -> _Results:
    """`EmbedLayerNormalization` of tables of codes, each with one scale and one zero point.

    Outputs: the result `[B, S, H]`, the number of ones of each row of the mask, `int32 [B]`.
    """
    ids, segments = node.input(0), node.optional(1)
    node.rank(0, "input_ids", 2)
    node.dtype(2, "word_embedding_quant", *CODES)
    if (segments is None) != (node.optional(4) is None):
        node.refuse("CC0205", f"{node.op_type} needs segment_ids and segment_embedding together")
    places = [ids, new.positions(new.size(ids, 1)), *([] if segments is None else [segments])]
    rows = [_row_of_codes(node, new, index, place) for index, place in enumerate(places)]
    if segments is None:
        node.ignore(10, 15)
    gamma, beta = (_row_of_codes(node, new, index, None) for index in (3, 4))
    epsilon = node.float("epsilon", 1e-12)
    y = new.op("LayerNormalization", new.total(rows[0], *rows[1:]), gamma, beta, axis=-1, epsilon=epsilon)
    return y, _ones(node, new)


def _row_of_codes(node: Node, new: Body, index: int, places: ir.Value | None) -> ir.Value:
    """Rows of one of the five tables, or all of it, as numbers."""
    codes, scale, zero = (node.input(index + first) for first in (2, 8, 13))
    codes = codes if places is None else new.op("Gather", codes, places)
    scale, zero = (new.op("Reshape", each, new.numbers()) for each in (scale, zero))
    return new.op("DequantizeLinear", codes, scale, zero)
