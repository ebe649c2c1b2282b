"""Computes constant biases of Conv and Gemm, which `fuse_quantization` needs."""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir.graph import constant_of, sole_user
from compiler.passes.fold_constants import folding
from compiler.rewrite.report import Pass
from compiler.rewrite.rule import Evaluate

__all__ = ["fold_biases"]


def fold_biases(evaluate: Evaluate) -> Pass:
    """The pass that folds with `evaluate`. It does not fold quantized biases."""
    return folding("fold_biases", evaluate, _is_bias)


def _is_bias(node: ir.Node) -> bool:
    """Whether the result is only used as the bias of a product, and does not depend on quantized values."""
    while len(node.outputs) == 1 and node.op_type != "DequantizeLinear":
        value = node.outputs[0]
        user = sole_user(value)
        if user is None:
            return False
        if user.op_type in ("Conv", "Gemm"):
            return len(user.inputs) > 2 and user.inputs[2] is value
        if any(given not in (None, value) and constant_of(given) is None for given in user.inputs):
            return False
        node = user
    return False
