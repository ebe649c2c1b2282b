"""Fuses operators that compute SiLU, HardSwish, Softplus or Mish into one operator."""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir.graph import same_shape
from compiler.ir.views.clip import ClipView
from compiler.ir.views.hard_sigmoid import HardSigmoidView
from compiler.rewrite.pattern import AnyOf, Const, Match, Op, Var
from compiler.rewrite.rule import Rewriter, Rule, rules_pass

__all__ = ["recognize_activations"]

_X = Var("x")


class RecognizeSwish(Rule):
    """`x · sigmoid(x)` → `Swish(x)`."""

    pattern = Op("Mul", _X, Op("Sigmoid", _X))

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("Swish", match["x"], version=24)


class RecognizeScaledSwish(Rule):
    """`x · sigmoid(alpha·x)` → `Swish(x, alpha)`."""

    pattern = Op("Mul", _X, Op("Sigmoid", Op("Mul", _X, Const("alpha"))))

    def check(self, match: Match) -> str | None:
        """Alpha is one number."""
        if match.constant("alpha").size != 1 or not same_shape(match["x"], match.root.outputs[0]):
            return "alpha is not one number"
        return None

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("Swish", match["x"], version=24, alpha=float(match.constant("alpha").item()))


class RecognizeHardSigmoidSwish(Rule):
    """`x · HardSigmoid(x, 1/6, 1/2)` → `HardSwish(x)`."""

    pattern = Op("Mul", _X, Op("HardSigmoid", _X, name="gate"))

    def check(self, match: Match) -> str | None:
        """The slope is 1/6 and the offset is 1/2."""
        view = HardSigmoidView[ir.Value].of(match.node("gate"), complete=True)
        if view is None:
            return "the attributes of HardSigmoid are not valid"
        return None if abs(view.slope * 6 - 1) < 1e-6 and view.offset == 0.5 else f"the slope is {view.slope:.6g}"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("HardSwish", match["x"], version=14)


_CLIP = Op("Clip", Op("Add", _X, Const(equal=3.0)), Var("low", optional=True), Var("high", optional=True), name="clip")


class RecognizeHardSwish(Rule):
    """`x · clip(x + 3, 0, 6) / 6` → `HardSwish(x)`."""

    pattern = AnyOf(
        Op("Div", Op("Mul", _X, _CLIP), Const(equal=6.0)),
        Op("Mul", Op("Mul", _X, _CLIP), Const(equal=1 / 6)),
        Op("Mul", _X, Op("Div", _CLIP, Const(equal=6.0))),
        Op("Mul", _X, Op("Mul", _CLIP, Const(equal=1 / 6))),
        Op("Mul", Op("Div", _X, Const(equal=6.0)), _CLIP),
        Op("Mul", Op("Mul", _X, Const(equal=1 / 6)), _CLIP),
    )

    def check(self, match: Match) -> str | None:
        """The type is a floating-point type, and the bounds (attributes or constants) are 0 and 6."""
        kind = match["x"].dtype
        if kind is None or not kind.is_floating_point():
            return f"the type is {kind}"
        view = ClipView[ir.Value].of(match.node("clip"), complete=True)
        given = () if view is None else (view.low, view.high)
        bounds = [None if bound is None else bound.number for bound in given]
        if bounds != [0, 6]:
            return f"the bounds are {bounds}"
        return None if same_shape(match["x"], match.root.outputs[0]) else "the constants may enlarge the result"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("HardSwish", match["x"], version=14)


class RecognizeSoftplus(Rule):
    """`x > 20 ? x : softplus(x)`, PyTorch's formula → `Softplus(x)`, which rounds to `x` above the threshold."""

    pattern = Op("Where", Op("Greater", _X, Const("threshold")), _X, Op("Softplus", _X))

    def check(self, match: Match) -> str | None:
        """From 17 on, `log(1 + exp(-x))` is less than half a unit in the last place of `x` in single precision."""
        threshold = match.constant("threshold")
        if match["x"].dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
            return f"the type is {match['x'].dtype}"
        if threshold.size != 1 or not float(threshold.item()) >= 17:
            return "the threshold is too low"
        return None if same_shape(match["x"], match.root.outputs[0]) else "the constant may enlarge the result"

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("Softplus", match["x"], version=1)


class RecognizeMish(Rule):
    """`x · tanh(softplus(x))` → `Mish(x)`."""

    pattern = Op("Mul", _X, Op("Tanh", Op("Softplus", _X)))

    def rewrite(self, match: Match, new: Rewriter) -> ir.Value:
        """The fused node."""
        return new.op("Mish", match["x"], version=18)


_RULES = [
    RecognizeSwish(),
    RecognizeScaledSwish(),
    RecognizeHardSigmoidSwish(),
    RecognizeHardSwish(),
    RecognizeSoftplus(),
    RecognizeMish(),
]
recognize_activations = rules_pass(
    "recognize_activations", _RULES, result="activations found", requires=frozenset({"shapes"})
)
