"""The measure `boxes`: the agreement of detections."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

__all__ = ["Form", "boxes", "overlaps"]

Form = Literal["corners", "centers"]
"""The four numbers of a box: `x1, y1, x2, y2`, or `x, y, width, height` with the box's center."""

_Array = np.ndarray[Any, Any]


def boxes(expected: tuple[_Array, _Array], found: tuple[_Array, _Array], overlap: float, form: Form) -> float:
    """Twice the number of matched boxes, divided by the number of all boxes of both detections: from 0 to 1.

    A detection is a pair of boxes `[n, 4]` and labels `[n]`. Two boxes with equal labels match if the area of their
    intersection is at least `overlap` times the area of their union. Each box matches at most one other. The pairs
    with the largest overlap match first. Without any box in both detections, the result is 1.
    """
    count = len(expected[0]) + len(found[0])
    if not count:
        return 1.0
    shares = overlaps(*(_corners(each[0].astype(np.float64), form) for each in (expected, found)))
    shares = np.where(expected[1][:, np.newaxis] == found[1][np.newaxis], shares, -1.0)
    matched = 0
    while shares.size and shares.max() >= overlap:
        row, column = np.unravel_index(int(shares.argmax()), shares.shape)
        shares[row], shares[:, column] = -1.0, -1.0
        matched += 1
    return 2 * matched / count


def overlaps(one: _Array, other: _Array) -> _Array:
    """The intersection over union of each pair of boxes `x1, y1, x2, y2`; 0 for boxes without an area."""
    low = np.maximum(one[:, np.newaxis, :2], other[np.newaxis, :, :2])
    high = np.minimum(one[:, np.newaxis, 2:], other[np.newaxis, :, 2:])
    common = np.clip(high - low, 0, None).prod(axis=-1)
    areas = [np.clip(each[:, 2:] - each[:, :2], 0, None).prod(axis=-1) for each in (one, other)]
    union = areas[0][:, np.newaxis] + areas[1][np.newaxis] - common
    found: _Array = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    return found


def _corners(given: _Array, form: Form) -> _Array:
    if form == "corners":
        return given
    centers, sizes = given[:, :2], given[:, 2:]
    return np.concatenate([centers - sizes / 2, centers + sizes / 2], axis=1)
