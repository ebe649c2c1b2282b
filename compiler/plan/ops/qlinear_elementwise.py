"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


class LookUp(Op):
    """`Y = table[X]`, where the bits of a code are the index into the table."""


class QLinearBinary(Op):
    """The codes of `f((A − a_zero) · a_scale, (B − b_zero) · b_scale)`: `clamp(round(… ÷ y_scale) + y_zero, low,
    high)`, with ties to even.
    """

    function: QLinearFunction
    """The function of the two numbers."""

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""


QLinearFunction: TypeAlias = Literal["Add", "Mul"]
"""A function of two numbers."""


class QLinearGlobalAveragePool(Op):
    """The codes of the means over the spatial axes: `saturate(round(Σ (X − x_zero) ÷ (count · scale)) + y_zero)`,
    with ties to even.
    """
