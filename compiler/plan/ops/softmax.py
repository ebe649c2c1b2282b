"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


class Softmax(Op):
    """`Y = function of X along axis`. X `[D0, …]`, floating-point; Y as X."""

    axis: int
    """The axis; a negative one counts from the end."""

    coerce_2d: bool
    """Whether the axes from `axis` to the last count as one axis; `axis` may then be the rank."""

    function: SoftmaxFunction
    """The function."""


SoftmaxFunction: TypeAlias = Literal["Softmax", "LogSoftmax", "Hardmax"]
"""The function that [`Softmax`] computes along the axis."""
