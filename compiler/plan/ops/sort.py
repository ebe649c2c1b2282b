"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


class ArgReduce(Op):
    """`Y = index along axis of the extremum of X`. X `[D0, …]`; Y int64, of size 1 in the axis, or without it."""

    axis: int
    """The axis; a negative one counts from the end."""

    function: ArgReduction
    """The function."""

    keepdims: bool
    """Whether the result keeps the axis, with size 1."""

    select_last_index: bool
    """Whether the last of equal elements counts instead of the first."""


ArgReduction: TypeAlias = Literal["ArgMax", "ArgMin"]
"""The extremum that [`ArgReduce`] finds."""


class TopK(Op):
    """`Values, Indices = the k greatest (or smallest) elements of X along axis, in order, and their indices`. X
    `[…, D, …]`, k int64 `[1]`; Values with the dtype of X, and Indices int64, `[…, k, …]`.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    largest: bool
    """Whether to select the greatest elements instead of the smallest."""
