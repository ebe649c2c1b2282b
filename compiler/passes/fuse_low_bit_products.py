"""Fuses matrix products and the DequantizeLinear of weights with blocks: the plan keeps their 2, 4 or 8 bits.

Otherwise, `fold_constants` would convert the weights to floats, or each run would. The product converts the weights in
registers, or a part of them for many rows. It multiplies codes, whose scales it applies to sums, so it rounds less.
"""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir.views.product import ProductView
from compiler.rewrite.low_bit import LowBitMatrix, PackedWeights, low_bit_product
from compiler.rewrite.pattern import AnyOf, Match, Op, Var
from compiler.rewrite.permutation import permutation_of
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["fuse_low_bit_products"]

_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_DEQUANTIZED = Op("DequantizeLinear", rest=True, name="dequantize")
_WEIGHTS = AnyOf(_DEQUANTIZED, Op("Transpose", _DEQUANTIZED, name="transpose"))


class FuseLowBitProduct(FindingRule[LowBitMatrix]):
    """`MatMul(A, DequantizeLinear(codes, scales, zeros))` → the plan's `MatMulNBits(A, codes, scales, zeros)`.

    The weights may be transposed. `Gemm(A, W, C)` becomes a product plus `C`.
    """

    pattern = AnyOf(
        Op("MatMul", Var("a"), _WEIGHTS),
        Op("Gemm", Var("a"), _WEIGHTS),
        Op("Gemm", Var("a"), _WEIGHTS, Var("c", optional=True)),
    )
    allow_shared_intermediates = True

    def check(self, match: Match) -> LowBitMatrix | str:
        """The weights are constant codes, with scales for blocks along the depth."""
        view = ProductView[ir.Value].of(match.root, complete=True)
        if match["a"].dtype not in _FLOATS:
            return f"the type is {match['a'].dtype}"
        if view is None or view.trans_a or view.is_scaled:
            return "it scales its operands, or transposes the left operand"
        transposed = not view.trans_b
        if "transpose" in match.named_nodes:
            if permutation_of(match.node("transpose")) != (1, 0):
                return "the transpose does not swap the axes of a matrix"
            transposed = not transposed
        return LowBitMatrix.of(match.node("dequantize"), transposed)

    def rewrite(self, match: Match, found: LowBitMatrix, new: Rewriter) -> ir.Value:
        """The product, plus the addend of a Gemm."""
        zeros, depth = found.counted_zeros, found.codes.shape[1]
        weights = PackedWeights(found.packed, found.scales, zeros, found.bits, depth)
        product = low_bit_product(new, match["a"], weights, match.root.outputs[0], "")
        return new.op("Add", product, match["c"]) if match.has("c") else product


fuse_low_bit_products = rules_pass(
    "fuse_low_bit_products",
    [FuseLowBitProduct()],
    result="products fused",
    requires=frozenset({"sorted", "shapes", "stored weights"}),
)
