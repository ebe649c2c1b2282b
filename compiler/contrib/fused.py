"""Products and convolutions with more in one operator: FusedMatMul, FusedGemm, FusedConv."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_PARAMETERS: dict[str, tuple[str, ...]] = {
    "Elu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    "Relu": (),
    "Selu": ("alpha", "gamma"),
    "Sigmoid": (),
    "Softplus": (),
    "Softsign": (),
    "Tanh": (),
    "ThresholdedRelu": ("alpha",),
}
"""The activations of FusedGemm and their parameters, which are attributes of the standard's operators."""
_OF_CONVOLUTIONS = ("Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid")


@expands("FusedMatMul")
@expands("TransposeMatMul")
def fused_matmul(node: Node, new: Body) -> ir.Value:
    """`alpha · A · B`. `transA` exchanges the last two axes; `transBatchA` moves the first axis before the last."""
    a, b = (_turned(node, new, index, name) for index, name in enumerate("AB"))
    product = new.op("MatMul", a, b)
    alpha = node.float("alpha", 1.0)
    return product if alpha == 1 else new.op("Mul", product, new.scalar(alpha, node.dtype(0, "A")))


def _turned(node: Node, new: Body, index: int, name: str) -> ir.Value:
    """An operand with its axes in the order of MatMul."""
    moves_batch = node.flag(f"transBatch{name}", False) if node.op_type == "FusedMatMul" else False
    swaps = node.flag(f"trans{name}", False)
    if not moves_batch and not swaps:
        return node.input(index)
    rank = node.rank(index, name)
    order = list(range(rank))
    if moves_batch and rank > 2:
        order = [*order[1:-1], 0, order[-1]]
    if swaps and rank > 1:
        order[-2:] = order[:-3:-1]
    return new.transpose(node.input(index), *order)


@expands("FusedGemm")
def fused_gemm(node: Node, new: Body) -> ir.Value:
    """An activation of `alpha · A · B + beta · C`."""
    options: dict[str, Any] = {name: node.float(name, 1.0) for name in ("alpha", "beta")}
    options |= {name: int(node.flag(name, False)) for name in ("transA", "transB")}
    product = new.op("Gemm", node.input(0), node.input(1), node.optional(2), **options)
    activation = node.string("activation")
    if activation not in _PARAMETERS:
        node.refuse("CC0202", f"FusedGemm has no activation {activation!r}", help=f"one of {', '.join(_PARAMETERS)}")
    parameters: dict[str, Any] = {name: node.float(f"activation_{name}") for name in _PARAMETERS[activation]}
    y: ir.Value = new.op(activation, product, **parameters)
    return y


@expands("FusedConv")
def fused_conv(node: Node, new: Body) -> ir.Value:
    """An activation of `Conv(X, W) + B + Z`."""
    options: dict[str, Any] = {"group": node.int("group", 1), "auto_pad": node.string("auto_pad", "NOTSET")}
    for name in ("dilations", "kernel_shape", "pads", "strides"):
        if (numbers := node.ints(name, None)) is not None:
            options[name] = numbers
    y = new.op("Conv", node.input(0), node.input(1), node.optional(2), **options)
    return _activated(node, new, new.total(y, node.optional(3)), node.string("activation", ""))


def _activated(node: Node, new: Body, y: ir.Value, activation: str) -> ir.Value:
    given: Sequence[float] = node.floats("activation_params", [])
    if activation == "":
        return y
    if activation not in _OF_CONVOLUTIONS:
        known = ", ".join(_OF_CONVOLUTIONS)
        node.refuse("CC0202", f"FusedConv has no activation {activation!r}", help=f"one of {known}")
    names = ("min", "max") if activation == "Clip" else _PARAMETERS[activation]
    if len(given) != len(names):
        node.refuse("CC0202", f"FusedConv's activation {activation} needs {len(names)} activation_params")
    if activation == "Clip":
        return new.op("Clip", y, *(new.scalar(limit, node.dtype(0, "X")) for limit in given))
    parameters: dict[str, Any] = dict(zip(names, given, strict=True))
    result: ir.Value = new.op(activation, y, **parameters)
    return result
