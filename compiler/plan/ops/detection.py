"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class MaxRoiPool(Op):
    """The maximum of each of `height × width` bins of each region of interest: `[rois, C, height, width]`. A bin
    without pixels is 0.
    """

    height: int
    """The height of the result."""

    scale: float
    """The factor of the coordinates."""

    width: int
    """The width of the result."""


class NonMaxSuppression(Op):
    """Selects the boxes that no better box of their class overlaps. The result is `int64 [selected, 3]`: batch,
    class and box.
    """

    centered: bool
    """Whether a box is given by its center, width and height instead of two corners `[y1, x1, y2, x2]`."""


class RoiAlign(Op):
    """Each region of interest, resampled to `[height, width]`: `[rois, C, height, width]`."""

    greatest: bool
    """Whether a bin is the maximum of its samples' weighted corners instead of the mean."""

    half_pixel: bool
    """Whether pixel centers lie at halves. If not, a region is at least one pixel wide."""

    height: int
    """The height of the result."""

    samples: int
    """The number of samples along each side of a bin; 0 means one per pixel, rounded up."""

    scale: float
    """The factor of the coordinates."""

    width: int
    """The width of the result."""
