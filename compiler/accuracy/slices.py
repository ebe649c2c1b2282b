"""The slices of an output, which give each of its elements a scale of its own.

A *slice* holds the elements with one index along an axis that separates groups of numbers, so that a slice has numbers
of one group, such as the scores of all boxes. Such an axis is the first one, of samples, and the one of channels or
features. The latter is the shorter one of the second and of the last axis, without axes of size 1. An axis counts only
if it has few slices with many elements: pixels in a row are no group, and neither are two numbers of a class.

An element is in one slice of each axis. Its scale is the largest magnitude in one of these slices: the one where this
magnitude is smallest. A score of 0.5 beside a coordinate of 500 has the scale of scores. Without any axis that counts,
the whole output is one slice.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

__all__ = ["Slices", "magnitudes"]

_LEAST_ELEMENTS = 4
"""The least number of elements in a slice."""
_FEW = 16
"""An axis with more slices needs at least four times as many elements in a slice as it has slices."""
_SIMILAR = 2.0
"""Two scales are similar up to this factor."""

_Array = np.ndarray[Any, Any]


def magnitudes(array: _Array) -> _Array:
    """The magnitudes of floats in double precision; 0 for elements that are not finite."""
    with np.errstate(invalid="ignore"):  # NumPy warns of signaling NaNs
        return np.nan_to_num(np.abs(array.astype(np.float64)), nan=0.0, posinf=0.0)


class Slices:
    """The slices of an output from the magnitudes of its elements (`magnitudes`)."""

    def __init__(self, magnitudes: _Array) -> None:
        along = [_largest_along(magnitudes, axis) for axis in _axes_of(magnitudes.shape)]
        if not along:
            along = [np.max(magnitudes, initial=0.0, keepdims=True)]
        self.scale: _Array = functools.reduce(np.minimum, along)
        """The scale of each element, in an array that broadcasts to the output."""

    def largest(self, sizes: _Array) -> _Array:
        """For each element, the largest of these sizes of all elements with a similar or a smaller scale.

        A similar scale is at most twice as large. `sizes` and the result have the shape of the output.
        """
        scales = np.broadcast_to(self.scale, sizes.shape).ravel()
        order = np.argsort(scales, kind="stable")
        so_far = np.maximum.accumulate(sizes.ravel()[order])
        ends = np.searchsorted(scales[order], _SIMILAR * scales, side="right")
        found: _Array = so_far[ends - 1].reshape(sizes.shape)
        return found


def _axes_of(shape: tuple[int, ...]) -> list[int]:
    """The axes that separate groups of numbers."""
    longer = [axis for axis in dict.fromkeys((len(shape) - 1, 1)) if axis > 0 and axis < len(shape) and shape[axis] > 1]
    channels = min(longer, key=shape.__getitem__, default=0)
    return [axis for axis in dict.fromkeys((0, channels)) if shape and _separates(shape[axis], math.prod(shape))]


def _separates(count: int, size: int) -> bool:
    """Whether an axis with so many slices separates groups in an output of so many elements."""
    elements = size // max(count, 1)
    return count > 1 and elements >= _LEAST_ELEMENTS and (count <= _FEW or elements >= 4 * count)


def _largest_along(magnitudes: _Array, axis: int) -> _Array:
    """The largest magnitude of each slice along an axis. The other axes have size 1."""
    others = tuple(other for other in range(magnitudes.ndim) if other != axis)
    found: _Array = magnitudes.max(axis=others, keepdims=True)
    return found
