"""Attention. The exporter translates it for four dims alone, and writes another result for masks that leave no key."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
from onnxscript import evaluator
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops import nn

from compiler.frontend.translations.parts import Untranslatable, axes, constant

__all__ = ["TRANSLATIONS"]

_OPSET_OF_ATTENTION = 23
"""The first opset with an operator for attention. It gives zeros if a mask leaves no key, as PyTorch does."""


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """The product softmax(query · keyᵀ · scale + mask) · value. A row that may attend to no key gives zeros.

    With `enable_gqa`, each head of the keys and values belongs to a group of heads of the queries.
    """
    rank = len(query.shape)
    if rank == 4 and (attn_mask is None or dropout_p or _opset() >= _OPSET_OF_ATTENTION):
        options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
        return _usual()(query, key, value, attn_mask, **options)
    if dropout_p or (enable_gqa and rank != 4):
        raise Untranslatable("dropout and groups of queries need tensors of four dims")
    if enable_gqa and query.shape[1] != key.shape[1]:
        key, value = nn._attention_repeat_kv_for_group_query(query, key, value)
    turned = op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2])
    left, right = _factors(query, scale)
    scores = op.MatMul(op.Mul(query, left), op.Mul(turned, right))
    mask = _causal(query, key) if is_causal else attn_mask
    if mask is None:
        return op.MatMul(op.Softmax(scores, axis=-1), value)
    zero, nothing = constant(0, query), constant(-math.inf, query)
    added = op.Where(mask, zero, nothing) if is_causal or mask.dtype == ir.DataType.BOOL else mask
    is_blind = op.Equal(op.ReduceMax(added, axes([-1]), keepdims=1), nothing)
    return op.MatMul(op.Where(is_blind, zero, op.Softmax(op.Add(scores, added), axis=-1)), value)


def flash_attention(
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> tuple[Any, Any]:
    """The same on the CPU, and zeros for the logarithms of sums, which only gradients need."""
    is_grouped = query.shape[1] != key.shape[1]
    result = attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=is_grouped)
    rows = op.Slice(op.Shape(query), axes([0]), axes([3]))
    return result, op.Expand(op.Constant(value_float=0.0), rows)


def _factors(query: Any, scale: float | None) -> tuple[Any, Any]:
    """The factors of queries and keys, whose product is the scale."""
    width = query.shape[-1]
    if scale is None and not isinstance(width, int):
        root = op.Sqrt(nn._attention_scale(query))
        return root, root
    number = 1 / math.sqrt(width) if scale is None else scale
    root = math.sqrt(abs(number))
    return constant(math.copysign(root, number), query), constant(root, query)


def _causal(query: Any, key: Any) -> Any:
    """The mask `[L, S]` that is true on the diagonal and below it."""
    sizes = [op.Slice(op.Shape(tensor), axes([-2]), axes([-1])) for tensor in (query, key)]
    ones = op.Expand(op.Constant(value_float=1.0), op.Concat(*sizes, axis=0))
    return op.Cast(op.Trilu(ones, upper=0), to=ir.DataType.BOOL)


def _opset() -> int:
    """The opset that the exporter writes."""
    opset = getattr(evaluator.default(), "opset", None)
    return 18 if opset is None else int(opset.version)


def _usual() -> Any:
    """The exporter's own translation to the opset that it writes: a function."""
    if _opset() >= _OPSET_OF_ATTENTION:
        from torch.onnx._internal.exporter._torchlib.ops.nn import aten_scaled_dot_product_attention_23

        return aten_scaled_dot_product_attention_23
    return nn.aten_scaled_dot_product_attention


TRANSLATIONS = {
    "aten::scaled_dot_product_attention": attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu": flash_attention,
}
