"""Fuses operators that compute GELU into Gelu, in the exact form and in the tanh form."""

from __future__ import annotations

import math
from typing import ClassVar

import onnx_ir as ir

from compiler.ir.graph import same_shape
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Pattern, Var
from compiler.rewrite.rule import Rewriter, Rule, rules_pass

__all__ = ["recognize_gelu"]

_X = Var("x")


def _times(constant: float, of: Pattern) -> Pattern:
    return Op("Mul", of, Const(equal=constant))


def _unit(of: Pattern) -> AnyOf:
    """`x · (1 + of) / 2`, with the factors in any order."""
    one_more = Op("Add", of, Const(equal=1.0))
    doubled = Op("Mul", _X, one_more)
    return AnyOf(
        Op("Mul", doubled, Const(equal=0.5)),
        Op("Div", doubled, Const(equal=2.0)),
        Op("Mul", AnyOf(_times(0.5, _X), Op("Div", _X, Const(equal=2.0))), one_more),
        Op("Mul", _X, _times(0.5, one_more)),
        Op("Mul", _X, Op("Div", one_more, Const(equal=2.0))),
    )


_ERF = Op("Erf", AnyOf(Op("Div", _X, Const(equal=math.sqrt(2))), _times(math.sqrt(0.5), _X)))

_CUBIC = 0.044715
_SQUARE = AnyOf(Op("Mul", _X, _X), Op("Pow", _X, Const(equal=2.0)))
_CUBE = AnyOf(Op("Pow", _X, Const(equal=3.0)), Op("Mul", _X, _SQUARE))
_SCALED_SQUARE = AnyOf(_times(_CUBIC, _SQUARE), Op("Mul", _X, _times(_CUBIC, _X)))
_SCALED_CUBE = AnyOf(_times(_CUBIC, _CUBE), Op("Mul", _X, _SCALED_SQUARE), Op("Mul", _SQUARE, _times(_CUBIC, _X)))
_POLYNOMIAL = AnyOf(Op("Add", _X, _SCALED_CUBE), Op("Mul", _X, Op("Add", _SCALED_SQUARE, Const(equal=1.0))))
_TANH = Op("Tanh", _times(math.sqrt(2 / math.pi), _POLYNOMIAL))


class _RecognizeGelu(Rule):
    approximate: ClassVar[str]

    def check(self, match: Match) -> str | None:
        """The result has the shape of `x`: constants of a higher rank would enlarge it."""
        return None if same_shape(match["x"], match.root.outputs[0]) else "the constants may enlarge the result"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("Gelu", match["x"], version=20, approximate=self.approximate)


class RecognizeGelu(_RecognizeGelu):
    """`x/2 · (1 + erf(x/√2))` → `Gelu(x)`."""

    pattern, approximate = _unit(_ERF), "none"


class RecognizeTanhGelu(_RecognizeGelu):
    """`x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³)))` → `Gelu(x, approximate=tanh)`."""

    pattern, approximate = _unit(_TANH), "tanh"


recognize_gelu = rules_pass(
    "recognize_gelu", [RecognizeGelu(), RecognizeTanhGelu()], result="GELUs found", requires=frozenset({"shapes"})
)
