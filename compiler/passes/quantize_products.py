"""Quantizes the operands of products with constant weights to 8 bits, as the option `precision` asks.

The plan stores the weights as codes, with a scale for each output. A run quantizes each row of the left operand, with a
scale and a zero point of its own, and sums the products of codes exactly. Products with codes of few bits keep their
codes, and may round each block of the left operand to 8 bits. Tables of a Gather stay as they are: they are part of no
product.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN
from compiler.rewrite.constant_weights import CONSTANT_PRODUCT, matrix_of
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.pattern import Const, Match, Op, Var
from compiler.rewrite.permutation import typed
from compiler.rewrite.quantized_rows import WORST, QuantizedRows
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.rule import FindingRule, Rewriter, apply_rules
from compiler.rewrite.weight_format import WeightFormat

__all__ = ["quantize_products"]

_EIGHT = WeightFormat.parse("int8")
_DEEPEST = 1 << 16
"""The largest depth whose sums fit 32 bits."""


class QuantizeOperands(FindingRule[QuantizedRows]):
    """`MatMul(A, W)` → the plan's `QuantizedMatMul(A, codes, scales)`, which quantizes each row of `A`.

    `Gemm(A, W, C)` becomes a product plus `C`.
    """

    pattern = CONSTANT_PRODUCT
    notable = True

    def __init__(self, keep: KeptWeights) -> None:
        self.keep = keep

    def check(self, match: Match) -> QuantizedRows | str:
        """The columns of the weights, which are finite, in float32 and large enough; no name of `keep` matches."""
        if reason := self.keep.reason(match, [ir.DataType.FLOAT]):
            return reason
        found = matrix_of(match)
        if isinstance(found, str):
            return found
        weights, is_transposed = found
        columns = weights if is_transposed else weights.T
        if columns.shape[1] > _DEEPEST:
            return f"the sums of more than {_DEEPEST} products may not fit 32 bits"
        rows = QuantizedRows.of(columns, _EIGHT)
        return rows if rows.error <= WORST else f"the error would be {rows.error:.0%} of the weights"

    def rewrite(self, match: Match, found: QuantizedRows, new: Rewriter) -> ir.Value:
        """The product, plus the addend of a Gemm; adds the price to the report."""
        weights, result = match["w"], match.root.outputs[0]
        size = match.constant("w").size
        new.note = f"int8, {size} weights, relative error {found.error:.2%}"
        new.error, new.weights = found.error, weights.name or ""
        codes = np.ascontiguousarray(found.signed[:, : size // len(found.codes)])
        name = weights.name or "weights"
        constants = [new.constant(codes, f"{name}.codes"), new.constant(found.scales[:, 0], f"{name}.scales")]
        product = new.op("QuantizedMatMul", match["a"], *constants, domain=PLAN_DOMAIN, version=1)
        typed(product, result.type, result.shape)
        return new.op("Add", product, match["c"]) if match.has("c") else product


class RoundLeftOperand(FindingRule[ir.Value]):
    """The plan's `MatMulNBits(A, codes, scales)` → the same operator that may round each block of `A` to 8 bits."""

    pattern = Op("MatMulNBits", Var("a"), Const("w"), rest=True, domain=PLAN_DOMAIN, lacks="rounds_a")
    notable = True

    def __init__(self, keep: KeptWeights) -> None:
        self.keep = keep

    def check(self, match: Match) -> ir.Value | str:
        """The codes are constant and many enough; no name of `keep` matches."""
        return self.keep.reason(match, [ir.DataType.UINT8]) or match["w"]

    def rewrite(self, match: Match, found: ir.Value, new: Rewriter) -> ir.Value:
        """The operator with the permission."""
        new.note = f"int{match.root.attributes.get_int('bits')}, the codes stay, and rows may be rounded to 8 bits"
        new.weights = found.name or ""
        result = match.root.outputs[0]
        return typed(new.like(match.root, *match.root.inputs, rounds_a=1), result.type, result.shape)


def quantize_products(kept: KeptWeights) -> Pass:
    """The pass that quantizes the operands of products, but not of those whose weights `kept` names.

    It runs after the other passes that read `kept`, and refuses names without weights.
    """

    def apply(model: ir.Model, report: PassReport) -> None:
        apply_rules(model, [QuantizeOperands(kept), RoundLeftOperand(kept)], report)
        kept.check_names()

    requires = frozenset({"sorted", "shapes"})
    return Pass("quantize_products", apply, result="products quantized", requires=requires, needed=True)
