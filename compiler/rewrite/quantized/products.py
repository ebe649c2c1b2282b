"""Convolutions and matrix products on 8-bit codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN, constant_of, rank
from compiler.ir.views.product import ProductView
from compiler.ir.views.quantize import CODES
from compiler.rewrite.permutation import inverse, reordered_shape, typed
from compiler.rewrite.quantized.params import (
    QuantParams,
    Target,
    are_normal,
    quant_params_from,
    quant_params_of,
    single_scale_params_of,
    target_from,
)
from compiler.rewrite.quantized.sums import bias_units, fit
from compiler.rewrite.rule import Rewriter

__all__ = ["channels_first", "channels_last", "convolution", "product", "qlinear"]

Array = np.ndarray[Any, Any]
_NOT_CODES = "an operand is not dequantized from 8 bits, with one scale or one for each output"


def convolution(node: ir.Node, target: Target | None, new: Rewriter) -> ir.Value | str:
    """`Conv` of codes. The weights have one scale, or one for each output. Without a target, the result is floats."""
    x, w = single_scale_params_of(node.inputs[0]), quant_params_of(node.inputs[1])
    if x is None or w is None:
        return _NOT_CODES
    return _convolution(node, x, w, node.inputs[2] if len(node.inputs) > 2 else None, target, new)


def product(node: ir.Node, target: Target | None, new: Rewriter) -> ir.Value | str:
    """`MatMul` and `Gemm` of codes. The right operand is a matrix with one scale, or one for each column.

    Without a target, the result is floats.
    """
    turned = _is_transposed(node)
    if isinstance(turned, str):
        return turned
    a, b = single_scale_params_of(node.inputs[0]), quant_params_of(node.inputs[1])
    if a is None or b is None:
        return _NOT_CODES
    return _product(node, a, b, turned, node.inputs[2] if len(node.inputs) > 2 else None, target, new)


def qlinear(node: ir.Node, new: Rewriter) -> ir.Value | str:
    """`QLinearConv` and `QLinearMatMul` with constant scales and zero points."""
    is_conv = node.op_type == "QLinearConv"
    x, w = quant_params_from(node, 0, None), quant_params_from(node, 3, 0 if is_conv else 1)
    target = target_from(node, 6)
    if x is None or w is None or target is None:
        return "a scale or zero point is not constant, or not supported"
    if is_conv:
        return _convolution(node, x, w, node.inputs[8] if len(node.inputs) > 8 else None, target, new)
    return _product(node, x, w, False, None, target, new)


def _convolution(
    node: ir.Node, x: QuantParams, w: QuantParams, bias: ir.Value | None, target: Target | None, new: Rewriter
) -> ir.Value | str:
    weights = constant_of(w.value)
    if w.value.dtype not in CODES or w.axis not in (None, 0):
        return _NOT_CODES
    if weights is None or rank(x.value) is None:
        return "the weights are not constant, or a rank is not known"
    parameters = _parameters(x, w, weights, bias, target)
    if isinstance(parameters, str):
        return parameters
    attributes: dict[str, Any] = {**node.attributes, **_limits(target)}
    operands = [channels_last(x.value, new), w.value, *_constants(parameters, new)]
    result: ir.Value = new.op("QLinearConv", *operands, domain=PLAN_DOMAIN, version=1, **attributes)
    return channels_first(result, x.value, _kind(node, target), node.outputs[0].shape, new)


def _product(
    node: ir.Node,
    a: QuantParams,
    b: QuantParams,
    turned: bool,
    bias: ir.Value | None,
    target: Target | None,
    new: Rewriter,
) -> ir.Value | str:
    matrix = constant_of(b.value)
    if b.value.dtype not in CODES or b.axis not in (None, 0 if turned else 1):
        return _NOT_CODES
    if matrix is None or matrix.ndim != 2 or (rank(a.value) or 0) < 2:
        return "the right operand is not a constant matrix, or a rank is unknown"
    parameters = _parameters(a, b, matrix if turned else matrix.T, bias, target)
    if isinstance(parameters, str):
        return parameters
    right = new.constant(np.ascontiguousarray(matrix.T), "weights") if turned else b.value
    operands = [a.value, right, *_constants(parameters, new)]
    result: ir.Value = new.op("QLinearMatMul", *operands, domain=PLAN_DOMAIN, version=1, **_limits(target))
    return typed(result, _kind(node, target), node.outputs[0].shape)


def _limits(target: Target | None) -> dict[str, Any]:
    return {"low": target.low if target else 0, "high": target.high if target else 0}


def _kind(node: ir.Node, target: Target | None) -> ir.TypeProtocol | None:
    return (target.node if target else node).outputs[0].type


def _is_transposed(node: ir.Node) -> bool | str:
    """Whether the right operand of a product is transposed; or the reason why the product is not supported."""
    view = ProductView[ir.Value].of(node, complete=True)
    if view is None or view.trans_a or view.is_scaled:
        return "it scales its operands, or transposes the left operand"
    return view.trans_b


def _parameters(
    x: QuantParams, w: QuantParams, weights: Array, bias: ir.Value | None, target: Target | None
) -> dict[str, Array | None] | str:
    """The scale, zero points and bias of the plan's operator, or the reason why not; axis 0 of `weights` is outputs."""
    with np.errstate(all="ignore"):
        unit = x.scale * w.scale
        scale = unit if target is None else unit / target.scale
    if not (are_normal(unit) and are_normal(scale)):
        return "the product of the scales exceeds float32"
    units = bias_units(bias, unit, len(weights), target)
    if isinstance(units, str):
        return units
    if not fit(x, weights, w.zero, units):
        return "the sums may not fit 32 bits"
    y_zero = None if target is None else target.zero
    return {"scale": scale, "x_zero": x.zero, "w_zero": w.zero, "y_zero": y_zero, "bias": units}


def _constants(parameters: dict[str, Array | None], new: Rewriter) -> list[ir.Value | None]:
    return [None if array is None else new.constant(np.asarray(array), name) for name, array in parameters.items()]


def channels_last(value: ir.Value, new: Rewriter) -> ir.Value:
    """Transposes `[N, C, …]` to `[N, …, C]`."""
    order = (0, *range(2, rank(value) or 0), 1)
    return typed(new.op("Transpose", value, perm=list(order)), value.type, reordered_shape(value.shape, order))


def channels_first(
    value: ir.Value, given: ir.Value, kind: ir.TypeProtocol | None, shape: ir.Shape | None, new: Rewriter
) -> ir.Value:
    """Transposes `[N, …, C]`, which has the rank of `given`, to `[N, C, …]`, which has the shape `shape`."""
    size = rank(given) or 0
    order = (0, size - 1, *range(1, size - 1))
    typed(value, kind, reordered_shape(shape, inverse(order)))
    return typed(new.op("Transpose", value, perm=list(order)), kind, shape)
