"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class MaxUnpool(Op):
    """A tensor of zeros with each element of X at the position that its index gives. Inputs: X and I (int64) `[N,
    C, W]` or `[N, C, H, W]`, and the output's shape (int64, optional).
    """

    kernel: list[int]
    """The sizes of a window."""

    pads: list[list[int]]
    """The padding, `[before, after]` for each spatial axis."""

    strides: list[int]
    """The strides of the window."""
