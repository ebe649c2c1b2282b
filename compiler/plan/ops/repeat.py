"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Expand(Op):
    """Broadcasts `X` with a tensor of the shape in input 1, `shape: int64 [n]`. Dimensions are aligned at the end,
    and those of size 1 are repeated; a 1 in `shape` keeps the dimension of `X`.
    """


class Tile(Op):
    """Repeats `X` along each axis: `Y[i] = X[i mod dims]`. Input 1, `repeats: int64 [rank]`, holds the number of
    repeats.
    """
