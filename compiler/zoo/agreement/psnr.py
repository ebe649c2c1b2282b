"""The measure `psnr`: the quality of an image or a signal."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["psnr"]


def psnr(expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> float:
    """The peak signal-to-noise ratio in decibels: 10 log₁₀(range² / mean square error), infinite for equal outputs.

    The range is the largest minus the smallest expected element. If all are equal, a difference gives -∞.
    """
    a, b = (each.astype(np.float64) for each in (expected, found))
    if not a.size or np.array_equal(a, b):
        return math.inf
    span, error = float(a.max() - a.min()), float(np.square(a - b).mean())
    if error == 0:
        return math.inf
    return 20 * math.log10(span) - 10 * math.log10(error) if span else -math.inf
