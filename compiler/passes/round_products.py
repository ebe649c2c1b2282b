"""Rounds the operands of products with constant weights to bfloat16, as the option `precision` asks.

The plan stores the weights in 16 bits. A run rounds the left operand, and sums in float32. Tables have 16 bits too: the
rows that a Gather reads become float32 after it, and lose no more precision.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from compiler.ir.graph import PLAN_DOMAIN
from compiler.rewrite.constant_weights import CONSTANT_PRODUCT, CONSTANT_TABLE, matrix_of, table_of
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.pattern import Match
from compiler.rewrite.permutation import typed
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.rule import FindingRule, Rewriter, apply_rules

__all__ = ["round_products"]

Array = np.ndarray[Any, Any]

_PART = 1 << 20
"""The numbers whose error is computed at a time."""


@dataclass(frozen=True)
class _Rounded:
    """Weights rounded to bfloat16, and whether they are stored transposed."""

    weights: Array
    is_transposed: bool
    error: float
    """`‖W − Ŵ‖ / ‖W‖`, where Ŵ is the rounded matrix."""

    @staticmethod
    def of(weights: Array, is_transposed: bool) -> _Rounded | str:
        """The nearest numbers, ties to even; or a reason against them."""
        with np.errstate(over="ignore"):
            rounded = weights.astype(ml_dtypes.bfloat16)
        lost, whole = 0.0, 0.0
        for first in range(0, weights.size, _PART):
            exact, near = (each.reshape(-1)[first : first + _PART].astype(np.float64) for each in (weights, rounded))
            lost, whole = lost + float(((near - exact) ** 2).sum()), whole + float((exact**2).sum())
        if not np.isfinite(lost):
            return "bfloat16 cannot represent a weight"
        return _Rounded(rounded, is_transposed, (lost / whole) ** 0.5 if whole else 0.0)

    def constant(self, match: Match, new: Rewriter) -> ir.Value:
        """The constant; adds the price to the report."""
        new.note = f"bfloat16, {self.weights.size} weights, relative error {self.error:.2%}"
        new.error = self.error
        return new.constant(self.weights, f"{match['w'].name or 'weights'}.bfloat16")


class _Round(FindingRule[_Rounded]):
    """The base of the rules. `w` is the name of the weights in the pattern."""

    notable = True

    def __init__(self, keep: KeptWeights) -> None:
        self.keep = keep

    @abstractmethod
    def weights(self, match: Match) -> tuple[Array, bool] | str:
        """The weights, and whether they are stored transposed; or a reason against rounding them."""

    def check(self, match: Match) -> _Rounded | str:
        """The weights are finite, in float32 and large enough; no name of `keep` matches."""
        if reason := self.keep.reason(match, [ir.DataType.FLOAT]):
            return reason
        found = self.weights(match)
        return found if isinstance(found, str) else _Rounded.of(*found)


class RoundProduct(_Round):
    """`MatMul(A, W)` → the plan's `RoundedMatMul(A, W)`, which rounds `A` as `W`.

    `Gemm(A, W, C)` becomes a product plus `C`.
    """

    pattern = CONSTANT_PRODUCT

    def weights(self, match: Match) -> tuple[Array, bool] | str:
        """The right operand."""
        return matrix_of(match)

    def rewrite(self, match: Match, found: _Rounded, new: Rewriter) -> ir.Value:
        """The product, plus the addend of a Gemm."""
        weights, result = found.constant(match, new), match.root.outputs[0]
        flag = int(found.is_transposed)
        product = new.op("RoundedMatMul", match["a"], weights, domain=PLAN_DOMAIN, version=1, trans_w=flag)
        typed(product, result.type, result.shape)
        return new.op("Add", product, match["c"]) if match.has("c") else product


class RoundTable(_Round):
    """`Gather(W, rows)` → `Cast(Gather(W, rows))`, where `W` is in bfloat16."""

    pattern = CONSTANT_TABLE

    def weights(self, match: Match) -> tuple[Array, bool] | str:
        """The table."""
        found = table_of(match)
        return found if isinstance(found, str) else (found, False)

    def rewrite(self, match: Match, found: _Rounded, new: Rewriter) -> ir.Value:
        """The rows, as float32."""
        rows = new.op("Gather", found.constant(match, new), match["places"], axis=0)
        return new.op("Cast", rows, to=ir.DataType.FLOAT)


def round_products(keep: Sequence[str]) -> Pass:
    """The pass that rounds products to bfloat16, but not those whose weights have a name in `keep`."""

    def apply(model: ir.Model, report: PassReport) -> None:
        kept = KeptWeights(keep)
        apply_rules(model, [RoundProduct(kept), RoundTable(kept)], report)
        kept.check_names()

    requires = frozenset({"sorted", "shapes"})
    return Pass("round_products", apply, result="weights rounded", requires=requires, needed=True)
