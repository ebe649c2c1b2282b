"""Fuses operators that compute layer normalization (mean, difference, quotient) into LayerNormalization."""

from __future__ import annotations

from compiler.rewrite.normalization import Recognize, TakeBias, TakeScale, inverse_of, mean_of, root_of, square_of
from compiler.rewrite.pattern import Const, Op, Var
from compiler.rewrite.rule import rules_pass

__all__ = ["recognize_layer_norm"]

_CENTERED = Op("Sub", Var("x"), mean_of(Var("x"), "mean"), name="centered")
_DEVIATION = root_of(Op("Add", mean_of(square_of(_CENTERED), "variance"), Const("epsilon")))
_NORM = Op("LayerNormalization", Var("x"), Var("ones"), Var(optional=True), name="norm")


class _RecognizeLayerNorm(Recognize):
    operator, version, means = "LayerNormalization", 17, ("mean", "variance")


class RecognizeQuotient(_RecognizeLayerNorm):
    """`(x - mean) / √(mean((x - mean)²) + ε)` → `LayerNormalization(x, 1)`."""

    pattern = Op("Div", _CENTERED, _DEVIATION)


class RecognizeProduct(_RecognizeLayerNorm):
    """`(x - mean) · (1 / √(mean((x - mean)²) + ε))` → `LayerNormalization(x, 1)`."""

    pattern = Op("Mul", _CENTERED, inverse_of(_DEVIATION))


class TakeLayerScale(TakeScale):
    """`LayerNormalization(x, 1) · scale` → `LayerNormalization(x, scale)`."""

    pattern = Op("Mul", _NORM, Var("scale"))


class TakeLayerBias(TakeBias):
    """`LayerNormalization(x, scale) + bias` → `LayerNormalization(x, scale, bias)`."""

    pattern = Op("Add", _NORM, Var("bias"))


recognize_layer_norm = rules_pass(
    "recognize_layer_norm",
    [RecognizeQuotient(), RecognizeProduct(), TakeLayerScale(), TakeLayerBias()],
    result="layer norm parts found",
    requires=frozenset({"shapes"}),
)
