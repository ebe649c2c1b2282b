"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op, Variant


Coordinates: TypeAlias = Literal[
    "HalfPixel",
    "HalfPixelSymmetric",
    "PytorchHalfPixel",
    "TfHalfPixelForNn",
    "AlignCorners",
    "Asymmetric",
    "TfCropAndResize",
]
"""The source coordinate of a position `y` of the result. `scale` is the scale of the axis, `n` and `m` are its
old and new size.
"""


class Interpolate(Op):
    """Resamples X along `axes`: each element of Y is copied from, or interpolated between, elements of X. Inputs:
    X, and, each optional and with a number for each of `axes`: `roi [2·axes]` (all starts, then all ends; for
    `TfCropAndResize`), `scales` (float32) and `sizes` (int64).
    """

    antialias: bool
    """Whether the filter widens if an axis shrinks, so that every element of X counts."""

    coordinates: Coordinates
    """The coordinate in X of a position in Y."""

    exclude_outside: bool
    """Whether positions outside X do not count. Otherwise, they count as the outermost position."""

    extrapolation: float
    """The value of places outside the region, for `TfCropAndResize`."""

    mode: AnyInterpolation
    """The interpolation of a value at a coordinate."""

    size_policy: SizePolicy
    """The meaning of `sizes`."""

    axes: list[int] | None = None
    """The axes of the inputs' numbers; a negative axis counts from the end; null means all."""


class Interpolation:
    """The interpolation of a value at a coordinate."""

    class Nearest(Variant):
        """The value at the nearest position."""

        value: Rounding

    class Cubic(Variant):
        """Interpolation between four positions by cubic convolution with this coefficient (usually −0.75 or −0.5)."""

        value: float


AnyInterpolation: TypeAlias = Interpolation.Nearest | Interpolation.Cubic | Literal["Linear"]
"""Any `Interpolation`."""


Rounding: TypeAlias = Literal["Floor", "Ceil", "RoundPreferFloor", "RoundPreferCeil", "CeilWhenShrinking"]
"""The rounding of a coordinate to the nearest position."""


SizePolicy: TypeAlias = Literal["Stretch", "NotLarger", "NotSmaller"]
"""The treatment of sizes that change the aspect ratio."""
