"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


Accumulation: TypeAlias = Literal["Sum", "Prod"]
"""The function that [`Cumulative`] accumulates."""


class Cumulative(Op):
    """`Y[i] = X[0] ∘ … ∘ X[i]` along an axis. X `[D0, …]`, axis int32 or int64 `[]` or `[1]` (a negative axis
    counts from the end); Y as X.
    """

    exclusive: bool
    """Whether to leave out `X[i]` itself: `Y[0]` is then 0, or 1 for products."""

    function: Accumulation
    """The function."""

    reverse: bool
    """Whether to accumulate from the end of the axis."""
