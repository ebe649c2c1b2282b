"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


class GridSample(Op):
    """Samples an image at the points of a grid: `Y[n, c, i, j]` is the image `X[n, c]` at the point `G[n, i, j] =
    (x, y)`. Inputs: `X [N, C, H, W]` and a floating-point grid `G [N, Hout, Wout, 2]`; output: `Y [N, C, Hout,
    Wout]`. Coordinates run from -1 to 1 over the width and the height.
    """

    align_corners: bool
    """Whether -1 and 1 are the centers of the outermost pixels instead of their outer edges."""

    mode: Sampling
    """The interpolation between pixels."""

    outside: Outside
    """The pixels outside the image."""


Outside: TypeAlias = Literal["Zeros", "Border", "Reflection"]
"""The pixels outside an image."""


Sampling: TypeAlias = Literal["Nearest", "Linear", "Cubic"]
"""The interpolation between pixels."""
