"""The slices of an output, which give each of its elements a scale of its own.

A *slice* holds the elements with one index along an axis: the first, the second or the last. These are the axes of
samples, of channels and of features, so that a slice holds numbers of one kind, such as the scores of all boxes. An
element is in one slice of each axis. Its scale is the largest magnitude in one of these slices: the one where this
magnitude is smallest. A score of 0.5 beside a coordinate of 500 has the scale of scores.

A slice of fewer than four elements says too little about their kind. An axis with such slices gives no scale, and
without any axis, the whole output is one slice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Slices", "magnitudes"]

_LEAST_ELEMENTS = 4

_Array = np.ndarray[Any, Any]


def magnitudes(array: _Array) -> _Array:
    """The magnitudes of floats in double precision; 0 for elements that are not finite."""
    with np.errstate(invalid="ignore"):  # NumPy warns of signaling NaNs
        return np.nan_to_num(np.abs(array.astype(np.float64)), nan=0.0, posinf=0.0)


class Slices:
    """The slices of an output from the magnitudes of its elements (`magnitudes`)."""

    def __init__(self, magnitudes: _Array) -> None:
        self._axes = _axes_of(magnitudes)
        self._choice: _Array | None = None
        along = [_largest_along(magnitudes, axis) for axis in self._axes]
        if len(along) > 1:
            self._choice = np.argmin(np.broadcast_arrays(*along), axis=0).astype(np.int8)
        self.scale = self.largest(magnitudes)
        """The scale of each element, in an array that broadcasts to the output."""

    def largest(self, magnitudes: _Array) -> _Array:
        """For each element, the largest of these magnitudes in the slice that gives its scale.

        `magnitudes` has the shape of the output, and the result broadcasts to it.
        """
        along = [_largest_along(magnitudes, axis) for axis in self._axes]
        if self._choice is None:
            return along[0] if along else np.max(magnitudes, initial=0.0, keepdims=True)
        found: _Array = np.choose(self._choice, along)
        return found


def _axes_of(magnitudes: _Array) -> list[int]:
    """The axes with at least two slices of enough elements."""
    shape, rank = magnitudes.shape, magnitudes.ndim
    candidates = dict.fromkeys(axis for axis in (0, 1, rank - 1) if 0 <= axis < rank)
    return [axis for axis in candidates if shape[axis] > 1 and magnitudes.size // shape[axis] >= _LEAST_ELEMENTS]


def _largest_along(magnitudes: _Array, axis: int) -> _Array:
    """The largest magnitude of each slice along an axis. The other axes have size 1."""
    others = tuple(other for other in range(magnitudes.ndim) if other != axis)
    found: _Array = magnitudes.max(axis=others, keepdims=True)
    return found
