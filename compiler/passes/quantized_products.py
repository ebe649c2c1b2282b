"""Convolutions and products on 8-bit codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.graph import PLAN_DOMAIN, constant_of, rank
from compiler.passes.codes import CODES, Codes, Target, codes_of, float_codes
from compiler.passes.permutation import inverse, reordered_shape, typed
from compiler.passes.rule import Rewriter

__all__ = ["channels_first", "channels_last", "convolution", "product"]

Array = np.ndarray[Any, Any]
_CLOSE = 1e-4
"""How far the scale of a bias may be from the product of the operands' scales: what rounding them leaves."""


def convolution(node: ir.Node, target: Target, new: Rewriter) -> ir.Value | str:
    """`Conv` of codes, weights with one scale or one an output."""
    x, w = float_codes(node.inputs[0]), codes_of(node.inputs[1])
    if x is None or w is None or w.value.dtype not in CODES or w.axis not in (None, 0):
        return "an operand is not dequantised from 8 bits"
    size = rank(x.value)
    if constant_of(w.value) is None or size is None or w.scale.ndim not in (0, 1):
        return "the weights are not constant, or a rank is not known"
    scale = x.scale * w.scale
    bias = _bias(node, scale, _outputs(w, 0))
    if isinstance(bias, str):
        return bias
    attributes: dict[str, Any] = {**node.attributes}
    operands = [channels_last(x.value, new), w.value, *_parameters(x, w, target, bias, new)]
    result = new.op(
        "QLinearConv", *operands, domain=PLAN_DOMAIN, version=1, **attributes, low=target.low, high=target.high
    )
    return channels_first(result, target, node.outputs[0].shape, new)


def product(node: ir.Node, target: Target, new: Rewriter) -> ir.Value | str:
    """`MatMul` and `Gemm` of codes, the right side a constant matrix with one scale or one a column."""
    turned = _is_turned(node)
    if isinstance(turned, str):
        return turned
    a, b = float_codes(node.inputs[0]), codes_of(node.inputs[1])
    if a is None or b is None or b.value.dtype not in CODES or b.axis not in (None, 0 if turned else 1):
        return "an operand is not dequantised from 8 bits"
    matrix = constant_of(b.value)
    if matrix is None or matrix.ndim != 2 or (rank(a.value) or 0) < 2:
        return "the right side is no constant matrix, or a rank is not known"
    bias = _bias(node, a.scale * b.scale, matrix.shape[0 if turned else 1])
    if isinstance(bias, str):
        return bias
    right = new.constant(np.ascontiguousarray(matrix.T), "weights") if turned else b.value
    operands = [a.value, right, *_parameters(a, b, target, bias, new)]
    result = new.op("QLinearMatMul", *operands, domain=PLAN_DOMAIN, version=1, low=target.low, high=target.high)
    return typed(result, target.node.outputs[0].type, node.outputs[0].shape)


def _is_turned(node: ir.Node) -> bool | str:
    """Whether the right side of a product is given transposed."""
    if node.op_type == "MatMul":
        return False
    numbers = {name: attribute.value for name, attribute in node.attributes.items()}
    if numbers.get("transA", 0) or numbers.get("alpha", 1.0) != 1 or numbers.get("beta", 1.0) != 1:
        return "it scales its operands, or transposes the left one"
    return bool(numbers.get("transB", 0))


def _outputs(weights: Codes, axis: int) -> int:
    array = constant_of(weights.value)
    return 0 if array is None else array.shape[axis]


def _parameters(x: Codes, w: Codes, target: Target, bias: Array | None, new: Rewriter) -> list[ir.Value]:
    """Scale, zero points and bias, as the plan's operators take them."""
    scale = (x.scale * w.scale / target.scale).astype(np.float32)
    given = [(scale, "scale"), (x.zero, "x_zero"), (w.zero, "w_zero"), (target.zero, "y_zero")]
    values = [new.constant(np.asarray(array), name) for array, name in given]
    return values if bias is None else [*values, new.constant(bias, "bias")]


def _bias(node: ir.Node, scale: Array, outputs: int) -> Array | str | None:
    """The bias in units of the products, one an output; `None`: there is none."""
    given = node.inputs[2] if len(node.inputs) > 2 else None
    if given is None:
        return None
    codes, numbers = codes_of(given), constant_of(given)
    if codes is not None and (array := constant_of(codes.value)) is not None:
        if array.dtype == np.int32 and not codes.zero.any() and np.allclose(codes.scale, scale, _CLOSE, 0):
            return _one_each(array, outputs)
        numbers = (array.astype(np.float64) - codes.zero) * codes.scale
    if numbers is None:
        return "the bias is not constant"
    units = np.rint(numbers.astype(np.float64) / scale)
    if not (np.abs(units) < 2**31 - 1).all():
        return "the bias is too large for 32 bits"
    return _one_each(units.astype(np.int32), outputs)


def _one_each(bias: Array, outputs: int) -> Array | str:
    if bias.size not in (1, outputs):
        return "the bias is not one an output"
    return np.ascontiguousarray(np.broadcast_to(bias.reshape(-1), (outputs,)))


def channels_last(value: ir.Value, new: Rewriter) -> ir.Value:
    """`[N, C, …]` as `[N, …, C]`."""
    order = (0, *range(2, rank(value) or 0), 1)
    return typed(new.op("Transpose", value, perm=list(order)), value.type, reordered_shape(value.shape, order))


def channels_first(value: ir.Value, target: Target, shape: ir.Shape | None, new: Rewriter) -> ir.Value:
    """`[N, …, C]` as `[N, C, …]`, which is `shape`."""
    size = rank(new.nodes[0].inputs[0]) or 0
    order = (0, size - 1, *range(1, size - 1))
    kind = target.node.outputs[0].type
    typed(value, kind, reordered_shape(shape, inverse(order)))
    return typed(new.op("Transpose", value, perm=list(order)), kind, shape)
