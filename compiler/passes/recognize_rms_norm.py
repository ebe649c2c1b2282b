"""Fuses operators that compute RMS normalization into RMSNormalization."""

from __future__ import annotations

from compiler.rewrite.normalization import Recognize, TakeScale, inverse_of, mean_of, root_of, square_of
from compiler.rewrite.pattern import Const, Op, Var
from compiler.rewrite.rule import rules_pass

__all__ = ["recognize_rms_norm"]

_ROOT = root_of(Op("Add", mean_of(square_of(Var("x")), "mean_square"), Const("epsilon")))


class _RecognizeRmsNorm(Recognize):
    operator, version, means = "RMSNormalization", 23, ("mean_square",)


class RecognizeQuotient(_RecognizeRmsNorm):
    """`x / √(mean(x²) + ε)` → `RMSNormalization(x, 1)`."""

    pattern = Op("Div", Var("x"), _ROOT)


class RecognizeProduct(_RecognizeRmsNorm):
    """`x · (1 / √(mean(x²) + ε))` → `RMSNormalization(x, 1)`."""

    pattern = Op("Mul", Var("x"), inverse_of(_ROOT))


class TakeRmsScale(TakeScale):
    """`RMSNormalization(x, 1) · scale` → `RMSNormalization(x, scale)`."""

    pattern = Op("Mul", Op("RMSNormalization", Var("x"), Var("ones"), name="norm"), Var("scale"))


recognize_rms_norm = rules_pass(
    "recognize_rms_norm",
    [RecognizeQuotient(), RecognizeProduct(), TakeRmsScale()],
    result="RMS norm parts found",
    requires=frozenset({"shapes"}),
)
