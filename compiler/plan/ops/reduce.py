"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


class Reduce(Op):
    """`Y = function of X along axes`. X `[D0, …]`, axes (optional) `[A]`; Y has size 1 in the reduced dimensions,
    or lacks them.
    """

    function: Reduction
    """The function."""

    keepdims: bool
    """Whether the result keeps the reduced dimensions, with size 1."""

    noop_with_empty_axes: bool
    """Whether an empty input `axes` reduces no axis instead of all."""

    axes: list[int] | None = None
    """The reduced axes; a negative axis counts from the end. Null means all axes, or those of the input."""


Reduction: TypeAlias = Literal["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare"]
"""The function of the elements `x` along the reduced axes that [`Reduce`] computes."""
