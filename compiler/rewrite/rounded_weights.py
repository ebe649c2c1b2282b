"""Constant weights rounded to 16 bits, and the passes that round those of products and tables."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from compiler.rewrite.constant_weights import CONSTANT_TABLE, table_of
from compiler.rewrite.kept_weights import KeptWeights
from compiler.rewrite.pattern import Match
from compiler.rewrite.report import Pass, PassReport
from compiler.rewrite.rule import FindingRule, Rewriter, apply_rules

__all__ = ["Array", "RoundWeights", "RoundedWeights", "rounding_pass"]

Array = np.ndarray[Any, Any]

_PART = 1 << 20
"""The numbers whose error is computed at a time."""


@dataclass(frozen=True)
class RoundedWeights:
    """Rounded weights, and whether they are stored transposed."""

    weights: Array
    is_transposed: bool
    error: float
    """`‖W − Ŵ‖ / ‖W‖`, where Ŵ is the rounded matrix."""

    @staticmethod
    def of(weights: Array, is_transposed: bool, dtype: np.dtype[Any]) -> RoundedWeights | str:
        """The nearest numbers of a type, ties to even; or a reason against them."""
        with np.errstate(over="ignore"):
            rounded = weights.astype(dtype)
        lost, whole = 0.0, 0.0
        for first in range(0, weights.size, _PART):
            exact, near = (each.reshape(-1)[first : first + _PART].astype(np.float64) for each in (weights, rounded))
            lost, whole = lost + float(((near - exact) ** 2).sum()), whole + float((exact**2).sum())
        if not np.isfinite(lost):
            return f"{dtype.name} cannot represent a weight"
        return RoundedWeights(rounded, is_transposed, (lost / whole) ** 0.5 if whole else 0.0)

    def constant(self, match: Match, new: Rewriter) -> ir.Value:
        """The constant; adds the price to the report."""
        dtype = self.weights.dtype.name
        new.note = f"{dtype}, {self.weights.size} weights, relative error {self.error:.2%}"
        new.error, new.weights = self.error, match["w"].name or ""
        return new.constant(self.weights, f"{match['w'].name or 'weights'}.{dtype}")


class RoundWeights(FindingRule[RoundedWeights]):
    """The base of the rules. `w` is the name of the weights in the pattern."""

    notable = True

    def __init__(self, keep: KeptWeights, dtype: np.dtype[Any]) -> None:
        self.keep, self.dtype = keep, dtype

    @abstractmethod
    def weights(self, match: Match) -> tuple[Array, bool] | str:
        """The weights, and whether they are stored transposed; or a reason against rounding them."""

    def check(self, match: Match) -> RoundedWeights | str:
        """The weights are finite, in float32 and large enough; no name of `keep` matches."""
        if reason := self.keep.reason(match, [ir.DataType.FLOAT]):
            return reason
        found = self.weights(match)
        return found if isinstance(found, str) else RoundedWeights.of(*found, self.dtype)


class RoundTable(RoundWeights):
    """`Gather(W, rows)` → `Cast(Gather(W, rows))`, where `W` has 16 bits."""

    pattern = CONSTANT_TABLE

    def weights(self, match: Match) -> tuple[Array, bool] | str:
        """The table."""
        found = table_of(match)
        return found if isinstance(found, str) else (found, False)

    def rewrite(self, match: Match, found: RoundedWeights, new: Rewriter) -> ir.Value:
        """The rows, as float32."""
        rows = new.op("Gather", found.constant(match, new), match["places"], axis=0)
        return new.op("Cast", rows, to=ir.DataType.FLOAT)


def rounding_pass(name: str, product: type[RoundWeights], keep: Sequence[str], dtype: np.dtype[Any]) -> Pass:
    """The pass with a rule for products, and with the one for tables."""
    kept = KeptWeights(keep)  # of all runs: a fused product no longer matches in a later one

    def apply(model: ir.Model, report: PassReport) -> None:
        apply_rules(model, [product(kept, dtype), RoundTable(kept, dtype)], report)
        kept.check_names()

    requires = frozenset({"sorted", "shapes"})
    return Pass(name, apply, result="weights rounded", requires=requires, needed=True)
