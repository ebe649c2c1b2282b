"""Attention on tensors of any rank. The exporter translates it for four dims alone."""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir
from onnxscript import evaluator
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops import nn

from compiler.frontend.translations.parts import axes, constant

__all__ = ["TRANSLATIONS"]


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
    """The product softmax(query · keyᵀ · scale + mask) · value. A row that may attend to no key gives zeros."""
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    if len(query.shape) == 4:
        return _usual()(query, key, value, attn_mask, **options)
    if dropout_p or enable_gqa:
        raise NotImplementedError("dropout and groups of queries need tensors of four dims")
    rank, width = len(query.shape), query.shape[-1]
    if scale is None and not isinstance(width, int):
        raise NotImplementedError("the last size of the queries must be fixed")
    factor = math.sqrt(1 / math.sqrt(width) if scale is None else scale)
    turned = op.Transpose(key, perm=[*range(rank - 2), rank - 1, rank - 2])
    scores = op.MatMul(op.Mul(query, constant(factor, query)), op.Mul(turned, constant(factor, query)))
    mask = _causal(query, key) if is_causal else attn_mask
    if mask is None:
        return op.MatMul(op.Softmax(scores, axis=-1), value)
    nothing = constant(-math.inf, query)
    is_boolean = is_causal or mask.dtype == ir.DataType.BOOL
    masked = op.Where(mask, scores, nothing) if is_boolean else op.Add(scores, mask)
    is_empty = op.Equal(op.ReduceMax(masked, axes([-1]), keepdims=1), nothing)
    return op.MatMul(op.Where(is_empty, constant(0, query), op.Softmax(masked, axis=-1)), value)


def _causal(query: Any, key: Any) -> Any:
    """The mask `[L, S]` that is true on the diagonal and below it."""
    sizes = [op.Slice(op.Shape(tensor), axes([-2]), axes([-1])) for tensor in (query, key)]
    ones = op.Expand(op.Constant(value_float=1.0), op.Concat(*sizes, axis=0))
    return op.Cast(op.Trilu(ones, upper=0), to=ir.DataType.BOOL)


def _usual() -> Any:
    """The exporter's own translation to the opset that it writes: a function."""
    opset = getattr(evaluator.default(), "opset", None)
    if opset is not None and opset.version >= 23:
        from torch.onnx._internal.exporter._torchlib.ops.nn import aten_scaled_dot_product_attention_23

        return aten_scaled_dot_product_attention_23
    return nn.aten_scaled_dot_product_attention


TRANSLATIONS = {"aten::scaled_dot_product_attention": attention}
