"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Compress(Op):
    """The rows of `axis` of `X` for which `condition: bool [n]` is true; rows beyond `n` are dropped. Without
    `axis`, the condition selects from the elements of `X` in row-major order.
    """

    axis: int | None = None
    """The axis; a negative one counts from the end."""


class NonZero(Op):
    """The indices of the nonzero elements of `X`: `Y int64 [rank, n]`, with a column of indices for each element,
    in row-major order. A scalar counts as a list of one element.
    """


class Trilu(Op):
    """The upper or lower triangle of each matrix of `X [.., M, N]`, with zeros elsewhere: `Y[i, j] = X[i, j]` if
    `j - i ≥ k` (upper) or `j - i ≤ k` (lower). Inputs: `X`, `k: int64 []` (absent: 0).
    """

    upper: bool
    """Whether the upper triangle is kept."""


class Unique(Op):
    """The distinct rows of `axis` of `X` (without `axis`: the distinct elements), and three `int64` lists: the
    index of the first occurrence of each in `X`, the index of each row of `X` among the distinct rows, and the
    number of occurrences of each. NaNs are equal, and larger than numbers.
    """

    sorted: bool
    """Whether the results are in ascending order instead of the order of their first occurrence."""

    axis: int | None = None
    """The axis; a negative one counts from the end."""
