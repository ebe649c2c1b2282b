"""Rounds the operands of products with constant weights to bfloat16, as the option `precision` asks.

The plan stores the weights in 16 bits. A run rounds the left operand, and sums in float32. Tables have 16 bits too: the
rows that a Gather reads become float32 after it, and lose no more precision.
"""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN
from compiler.rewrite.constant_weights import CONSTANT_PRODUCT, matrix_of
from compiler.rewrite.pattern import Match
from compiler.rewrite.permutation import typed
from compiler.rewrite.report import Pass
from compiler.rewrite.rounded_weights import Array, RoundedWeights, RoundWeights, rounding_pass
from compiler.rewrite.rule import Rewriter

__all__ = ["round_products"]


class RoundProduct(RoundWeights):
    """`MatMul(A, W)` → the plan's `RoundedMatMul(A, W)`, which rounds `A` as `W`.

    `Gemm(A, W, C)` becomes a product plus `C`.
    """

    pattern = CONSTANT_PRODUCT

    def weights(self, match: Match) -> tuple[Array, bool] | str:
        """The right operand."""
        return matrix_of(match)

    def rewrite(self, match: Match, found: RoundedWeights, new: Rewriter) -> ir.Value:
        """The product, plus the addend of a Gemm."""
        weights, result = found.constant(match, new), match.root.outputs[0]
        flag = int(found.is_transposed)
        product = new.op("RoundedMatMul", match["a"], weights, domain=PLAN_DOMAIN, version=1, trans_w=flag)
        typed(product, result.type, result.shape)
        return new.op("Add", product, match["c"]) if match.has("c") else product


def round_products(keep: Sequence[str]) -> Pass:
    """The pass that rounds both operands to bfloat16, but not where the weights have a name in `keep`."""
    return rounding_pass("round_products", RoundProduct, keep, np.dtype(ml_dtypes.bfloat16))
