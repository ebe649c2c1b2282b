"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class DeformConv(Op):
    """`Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · M[n, i, j, y, x] · X(n, c, v, u)` with `v = y·s + i·d − before +
    Δy`, `u = x·s + j·d − before + Δx` and `(Δy, Δx) = D[n, i, j, :, y, x]`. Between pixels, `X` is a linear
    combination of 2 × 2 pixels; pixels outside count as zero.
    """

    dilations: list[int]
    """The step inside the window."""

    groups: int
    """The number of groups of channels and outputs."""

    offset_groups: int
    """The number of groups of channels that share offsets."""

    pads: list[list[int]]
    """The padding, `[before, after]` along height and width."""

    strides: list[int]
    """The step of the window along height and width."""
