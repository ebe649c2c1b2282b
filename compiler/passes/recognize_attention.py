"""Fuses operators that compute scaled dot-product attention into Attention.

The result is ONNX's operator. If the model's attention weights differ from ONNX's for a query that attends to no key,
the result is the Attention of `candle.plan` instead, whose attribute `guard` describes the difference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, constant_of, rank, same_shape
from compiler.ir.views.softmax import SoftmaxView
from compiler.rewrite.attention_mask import dims_of, is_blind, is_causal, leaves_a_key, mask_of, why_not_mask
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Var
from compiler.rewrite.permutation import permutation_of, reordered_shape, typed
from compiler.rewrite.reshape import reshape_target
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["recognize_attention"]

_FLOATS = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
_PRODUCT = Op("MatMul", Var("q"), Var("k"), name="product")
_SCALED = AnyOf(Op(("Mul", "Div"), _PRODUCT, Const("factor"), name="scaled"), _PRODUCT)
_LOWEST = Const(equal=-np.inf)
_SCORES = AnyOf(
    Op("Add", _SCALED, Var("mask")),
    Op("Where", Var("hidden"), _LOWEST, _SCALED),
    Op("Where", Var("shown"), _SCALED, _LOWEST),
    _SCALED,
)
_WEIGHTS = Op("Softmax", _SCORES, name="weights")
_GUARDED = Op("Where", Op("IsNaN", _WEIGHTS), Const(equal=0.0), _WEIGHTS, name="guarded")
_SAFE = Op("Where", Var("blind"), Const(equal=0.0), _WEIGHTS, name="safe")


@dataclass(frozen=True)
class _Keys:
    """The keys before a transpose or reshape, and the factor that multiplies them."""

    value: ir.Value
    scale: float
    perm: tuple[int, ...] | None = None
    shape: ir.Shape | None = None


@dataclass(frozen=True)
class _Unscaled:
    """The unscaled keys, and the factor of the products of unscaled queries and keys."""

    keys: _Keys
    scale: float


class RecognizeAttention(FindingRule[_Unscaled]):
    """`softmax(q · kᵀ · scale + mask) · v` → `Attention(q, k, v, mask)`; drops a repeat of the heads of k and v."""

    pattern = Op("MatMul", AnyOf(_GUARDED, _SAFE, _WEIGHTS), Var("v"))
    looks_above = 8  # a repeat of heads, below a transpose of keys between two reshapes, and factors

    def check(self, match: Match) -> _Unscaled | str:
        """Heads and batches do not broadcast, softmax is along the keys, and the mask is as wide as the keys."""
        size = rank(match["v"])
        if size not in (3, 4) or match["v"].dtype not in _FLOATS:
            return "the values are not floating-point vectors of every batch and head"
        softmax = SoftmaxView[ir.Value].of(match.node("weights"))
        if softmax is None or softmax.given not in (-1, size - 1):
            return "softmax is not along the last axis"
        if (keys := _keys(match["k"])) is None:
            return "the keys are not transposed"
        if (scale := _scale(match, keys)) is None or not scale > 0:
            return "the scale is not one positive constant"
        if not all(_same_leading_dims(match[name], match["v"]) for name in ("q", "k")):
            return "the batches and heads of queries, keys and values are not known to be the same"
        if "safe" in match.named_nodes and not is_blind(match["blind"], match):
            return "weights are replaced by zeros, but not exactly where the mask leaves no key"
        return why_not_mask(match) or _Unscaled(keys, scale)

    def rewrite(self, match: Match, found: _Unscaled, new: Rewriter) -> ir.Value:
        """The fused node. Without a batch axis, reshapes around it add and remove one."""
        keys, scale = found.keys, found.scale
        q, _ = _unscaled(match["q"])
        k, v = keys.value, match["v"]
        few_k, few_v = _before_repeat(k, keys.shape or k.shape), _before_repeat(v, v.shape)
        if keys.perm is not None:
            k = new.op("Transpose", k, perm=list(keys.perm))
        elif few_k is not None and few_v is not None and _same_leading_dims(few_k, few_v):
            k, v = few_k, few_v
        elif keys.shape is not None:
            k = _reshaped(k, keys.shape, new)
        if rank(match["v"]) == 4:
            return _attention(match, new, q, k, v, scale)
        axis = new.constant(np.array([0], np.int64), "axis")
        q, k, v = (new.op("Unsqueeze", value, axis, version=13) for value in (q, k, v))
        result, output = _attention(match, new, q, k, v, scale), match.root.outputs[0]
        typed(result, output.type, None if output.shape is None else ir.Shape([1, *output.shape.dims]))
        return new.op("Squeeze", result, axis, version=13)


def _attention(match: Match, new: Rewriter, q: ir.Value, k: ir.Value, v: ir.Value, scale: float) -> ir.Value:
    inputs = [q, k, v]
    if is_causal(match):
        return new.op("Attention", *inputs, version=23, scale=scale, is_causal=1)
    if (mask := mask_of(match, new)) is not None:
        inputs.append(mask)
    if "guarded" in match.named_nodes:
        return new.op("Attention", *inputs, domain=PLAN_DOMAIN, version=1, scale=scale, guard="undefined")
    if "safe" not in match.named_nodes and not leaves_a_key(match):
        return new.op("Attention", *inputs, domain=PLAN_DOMAIN, version=1, scale=scale, guard="nothing")
    return new.op("Attention", *inputs, version=23, scale=scale)


def _scale(match: Match, keys: _Keys) -> float | None:
    """The factor of `_Unscaled`; `None` if it is not one number."""
    scale = _unscaled(match["q"])[1] * keys.scale
    if match.has("factor"):
        factor = match.constant("factor")
        if factor.size != 1 or not same_shape(match["scaled"], match["product"]) or not factor.item():
            return None
        scale = scale / float(factor.item()) if match.node("scaled").op_type == "Div" else scale * float(factor.item())
    return scale


def _unscaled(value: ir.Value) -> tuple[ir.Value, float]:
    """The value before a Mul or Div by a constant, and the factor."""
    node = value.producer()
    if node is None or node.domain or node.op_type not in ("Mul", "Div"):
        return value, 1.0
    for given, other in (node.inputs, reversed(node.inputs)):
        factor = constant_of(other)
        if given is not None and factor is not None and factor.size == 1 and same_shape(given, value) and factor.item():
            number = float(factor.item())
            return given, 1 / number if node.op_type == "Div" else number
        if node.op_type == "Div":
            break
    return value, 1.0


def _keys(value: ir.Value) -> _Keys | None:
    """The keys as rows, from a value with the keys as columns; `None` if unknown."""
    columns, outer = _unscaled(value)
    node = columns.producer()
    if node is None or node.domain or node.inputs[0] is None:
        return None
    if node.op_type == "Reshape":
        return _keys_by_reshapes(node, outer)
    perm = permutation_of(node) if node.op_type == "Transpose" else None
    if perm is None:
        return None
    rows, inner = _unscaled(node.inputs[0])
    *leading, depth, row = perm
    order = (*leading, row, depth)
    return _Keys(rows, outer * inner, None if order == tuple(range(len(order))) else order)


def _keys_by_reshapes(last: ir.Node, scale: float) -> _Keys | None:
    """The keys of `Reshape(Transpose(x))` that swaps the last two axes while the leading axes are merged."""
    middle = last.inputs[0].producer() if last.inputs[0] else None
    if middle is None or middle.op_identifier() != ("", "Transpose", "") or permutation_of(middle) != (0, 2, 1):
        return None
    if middle.inputs[0] is None or (result := last.outputs[0].shape) is None:
        return None
    rows, inner = _unscaled(middle.inputs[0])
    folded, shape = dims_of(rows), reordered_shape(result, (*range(len(result) - 2), len(result) - 1, len(result) - 2))
    if folded is None or shape is None or rows.shape is None or None in folded or folded[-2:] != _listed(shape)[-2:]:
        return None
    first = rows.producer()
    given = first.inputs[0] if first is not None and first.op_identifier() == ("", "Reshape", "") else None
    if given is not None and None not in _listed(shape) and dims_of(given) == _listed(shape):
        return _Keys(given, scale * inner)
    can_reshape = reshape_target(rows.shape.dims, shape.dims) is not None
    return _Keys(rows, scale * inner, shape=shape) if can_reshape else None


def _reshaped(value: ir.Value, shape: ir.Shape, new: Rewriter) -> ir.Value:
    target = None if value.shape is None else reshape_target(value.shape.dims, shape.dims)
    return typed(new.op("Reshape", value, new.constant(np.array(target, np.int64), "shape")), value.type, shape)


def _before_repeat(value: ir.Value, repeated: ir.Shape | None) -> ir.Value | None:
    """The `x [N, few, S, D]` of a `Reshape(Expand(Unsqueeze(x)))` that repeats each head: `[N, few · times, S, D]`."""
    at, chain = value, []
    for op_type in ("Reshape", "Expand", "Unsqueeze"):
        node = at.producer()
        if node is None or node.op_identifier() != ("", op_type, "") or node.inputs[0] is None:
            return None
        at = node.inputs[0]
        chain.append(dims_of(at))
    expanded, apart, few = chain
    if few is None or expanded is None or repeated is None or len(few) != 4 or len(expanded) != 5 or None in few:
        return None
    (n, heads, *vector), times = few, expanded[2]
    if not isinstance(heads, int) or not isinstance(times, int):
        return None
    is_repeat = apart == [n, heads, 1, *vector] and expanded == [n, heads, times, *vector]
    return at if is_repeat and _listed(repeated) == [n, heads * times, *vector] else None


def _listed(shape: ir.Shape) -> list[int | str | None]:
    return [dim if isinstance(dim, int) else dim.value for dim in shape.dims]


def _same_leading_dims(one: ir.Value, other: ir.Value) -> bool:
    """Whether both are known to have the same dimensions except the last two."""
    first, second = dims_of(one), dims_of(other)
    if first is None or second is None or len(first) != len(second) or None in first[:-2]:
        return False
    return first[:-2] == second[:-2]


recognize_attention = rules_pass(
    "recognize_attention", [RecognizeAttention()], result="attentions found", requires=frozenset({"shapes"})
)
