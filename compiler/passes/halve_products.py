"""Rounds constant weights of products to float16, as the option `precision` asks.

The plan stores the weights in 16 bits. The runtime widens them when it loads the plan, or in each product where that is
as fast. The left operand and the sums are in float32. Tables have 16 bits too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.rewrite.constant_weights import CONSTANT_PRODUCT, matrix_of
from compiler.rewrite.pattern import Match
from compiler.rewrite.permutation import typed
from compiler.rewrite.report import Pass
from compiler.rewrite.rounded_weights import Array, RoundedWeights, RoundWeights, rounding_pass
from compiler.rewrite.rule import Rewriter

__all__ = ["halve_products"]


class HalveProduct(RoundWeights):
    """`MatMul(A, W)` → `MatMul(A, Cast(W))`, where `W` is in float16; the same for a Gemm.

    The runtime computes the Cast when it loads the plan. It keeps the 16 bits in memory where that is as fast.
    """

    pattern = CONSTANT_PRODUCT

    def weights(self, match: Match) -> tuple[Array, bool] | str:
        """The right operand."""
        return matrix_of(match)

    def rewrite(self, match: Match, found: RoundedWeights, new: Rewriter) -> ir.Value:
        """The operator with rounded weights."""
        root, weights = match.root, match["w"]
        wide = new.op("Cast", found.constant(match, new), to=ir.DataType.FLOAT)
        typed(wide, weights.type, weights.shape)
        inputs = [wide if value is weights else value for value in root.inputs]
        attributes: dict[str, Any] = dict(root.attributes)
        product: ir.Value = new.op(root.op_type, *inputs, domain=root.domain, version=root.version, **attributes)
        return product


def halve_products(keep: Sequence[str]) -> Pass:
    """The pass that rounds weights to float16, but not those with a name in `keep`."""
    return rounding_pass("halve_products", HalveProduct, keep, np.dtype(np.float16))
