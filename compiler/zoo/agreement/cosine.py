"""The measure `cosine`: the similarity of embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["cosine"]


def cosine(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any], axis: int = -1) -> float:
    """The smallest cosine of the angles between the vectors of two outputs along an axis: from -1 to 1.

    Two vectors of zeros have the cosine 1; one of them and another vector have 0.

    Raises:
        ValueError: the axis does not exist.
    """
    if not -expected.ndim <= axis < expected.ndim:
        raise ValueError(f"an output of shape {list(expected.shape)} has no axis {axis}")
    a, b = (np.moveaxis(each, axis, -1).astype(np.float64) for each in (expected, found))
    lengths = [np.linalg.norm(each, axis=-1) for each in (a, b)]
    product = lengths[0] * lengths[1]
    cosines = np.divide((a * b).sum(axis=-1), product, out=np.zeros_like(product), where=product > 0)
    cosines = np.where((lengths[0] == 0) & (lengths[1] == 0), 1.0, np.clip(cosines, -1.0, 1.0))
    return float(cosines.min(initial=1.0))
