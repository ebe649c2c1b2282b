"""The measures `top1` and `top5`: the agreement on the most probable classes."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["top"]


def top(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any], count: int, axis: int = -1) -> float:
    """The mean fraction of the `count` largest scores of `found` that are among those of `expected`.

    `axis` is the axis of the classes. Classes with equal scores are interchangeable. The result is from 0 to 1.

    Raises:
        ValueError: the axis does not exist, or has fewer classes.
    """
    if not -expected.ndim <= axis < expected.ndim:
        raise ValueError(f"an output of shape {list(expected.shape)} has no axis {axis}")
    classes = expected.shape[axis]
    if classes < count:
        raise ValueError(f"there are {classes} classes on axis {axis}, fewer than {count}")
    wanted, given = (np.moveaxis(each, axis, -1).reshape(-1, classes) for each in (expected, found))
    least = np.partition(wanted, classes - count, axis=-1)[:, classes - count, np.newaxis]
    chosen = np.lexsort((wanted, given), axis=-1)[:, classes - count :]
    among = np.take_along_axis(wanted, chosen, axis=-1) >= least
    return float(among.mean()) if among.size else 1.0
