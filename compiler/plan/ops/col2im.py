"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Col2Im(Op):
    """`Y[n, c, p·s + i·d − before] += X[n, (c, i), p]`: adds each element of a sliding window's columns at its
    place in the image.
    """

    dilations: list[int]
    """The step inside the window on each axis."""

    pads: list[list[int]]
    """`[before, after]`: the padding of the image on each axis."""

    strides: list[int]
    """The step of the window on each axis."""
