"""Fuses operators that compute softmax into Softmax."""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir.views.reduce import axes_of, keeps_axes
from compiler.rewrite.pattern import AnyOf, Match, Op, Pattern, Var
from compiler.rewrite.rule import FindingRule, Rewriter, rules_pass

__all__ = ["recognize_softmax"]


def _reduced(op_type: str, of: Pattern, name: str) -> Pattern:
    return Op(op_type, of, Var(optional=True), name=name)


_EXP = Op("Exp", Op("Sub", Var("x"), _reduced("ReduceMax", Var("x"), "max")), name="exp")
_SUM = _reduced("ReduceSum", _EXP, "sum")


class RecognizeSoftmax(FindingRule[int]):
    """`exp(x - max(x)) / Σ exp(x - max(x))` → `Softmax(x)`."""

    pattern = AnyOf(Op("Div", _EXP, _SUM), Op("Mul", _EXP, Op("Reciprocal", _SUM)))

    def check(self, match: Match) -> int | str:
        """Both reductions are over the same single axis, and keep it."""
        reductions = [match.node("max"), match.node("sum")]
        first, second = (axes_of(node) for node in reductions)
        if first is None or first != second or len(first) != 1:
            return "the reductions are not over the same single axis"
        return first[0] if all(keeps_axes(node) for node in reductions) else "the axis is dropped"

    def rewrite(self, match: Match, found: int, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("Softmax", match["x"], version=13, axis=found)


recognize_softmax = rules_pass(
    "recognize_softmax", [RecognizeSoftmax()], result="softmaxes found", requires=frozenset({"shapes"})
)
