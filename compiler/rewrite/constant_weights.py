"""Constant weights of products and tables, as passes that store them with fewer bits find them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN
from compiler.ir.views.gather import GatherView
from compiler.ir.views.product import ProductView
from compiler.rewrite.low_bit import PackedWeights, low_bit_product
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Var
from compiler.rewrite.rule import Rewriter

__all__ = ["CONSTANT_PRODUCT", "CONSTANT_TABLE", "coded_product", "matrix_of", "rows_of", "table_of"]

CONSTANT_PRODUCT = AnyOf(
    Op("MatMul", Var("a"), Const("w")),
    Op("MatMul", Var("a"), Const("w"), domain=PLAN_DOMAIN),
    Op("Gemm", Var("a"), Const("w")),
    Op("Gemm", Var("a"), Const("w"), Var("c", optional=True)),
)
"""A product whose right operand `w` is constant."""
CONSTANT_TABLE = Op("Gather", Const("w"), Var("places"))
"""The rows `places` of a constant table `w`."""


def matrix_of(match: Match) -> tuple[np.ndarray, bool] | str:
    """The weights of a product and whether they are stored transposed; or a reason against changing them."""
    view = ProductView[ir.Value].of(match.root, complete=True)
    if view is None or view.trans_a or view.is_scaled:
        return "the product scales its operands, or transposes the left operand"
    weights = match.constant("w")
    return (weights, view.trans_b) if weights.ndim == 2 else "the weights are no matrix"


def rows_of(match: Match) -> np.ndarray | str:
    """The columns of the weights of a product as rows `[N, K]`; or a reason against changing them."""
    found = matrix_of(match)
    if isinstance(found, str):
        return found
    weights, is_transposed = found
    return weights if is_transposed else weights.T


def coded_product(new: Rewriter, match: Match, weights: PackedWeights) -> ir.Value:
    """The product of a match with codes in place of `w`, plus the addend of a Gemm."""
    product = low_bit_product(new, match["a"], weights, match.root.outputs[0], f"{match['w'].name or 'weights'}.")
    return new.op("Add", product, match["c"]) if match.has("c") else product


def table_of(match: Match) -> np.ndarray | str:
    """The table whose rows a Gather reads; or a reason against changing it."""
    view, weights = GatherView[ir.Value].of(match.root, complete=True), match.constant("w")
    if weights.ndim != 2 or view is None or view.axis not in (0, -2):
        return "it does not read rows of a table"
    return weights
