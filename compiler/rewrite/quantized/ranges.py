"""The ranges of activations, and the 8-bit codes that represent them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BINS", "ActivationCodes", "Observed"]

Array = np.ndarray[Any, Any]

BINS = 2048
_PARTS = np.arange(16, 65) / 64
"""The parts of a bound that the search tries: from a quarter to the whole bound."""
_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class ActivationCodes:
    """Codes from 0 to 255: a number is `(code − zero) · scale`."""

    scale: Array
    """`float32 []`"""
    zero: Array
    """`uint8 []`"""

    @staticmethod
    def of(low: float, high: float) -> ActivationCodes:
        """The codes for numbers from `low` ≤ 0 to `high` ≥ 0, which represent 0 exactly."""
        scale = np.float32(high / 255 - low / 255)
        if scale < _TINY:  # all numbers count as zero
            return ActivationCodes(np.array(1, np.float32), np.array(0, np.uint8))
        return ActivationCodes(np.array(scale), np.array(np.clip(np.rint(-low / float(scale)), 0, 255), np.uint8))


@dataclass
class Observed:
    """The numbers that one value had in runs: the range, which includes 0, and the histogram of those other than 0."""

    low: float = 0.0
    high: float = 0.0
    counts: Array | None = None
    """`[BINS]`, of equal parts of the range."""

    def widen(self, numbers: Array) -> None:
        """Adds numbers to the range."""
        if numbers.size:
            self.low = min(self.low, float(numbers.min()))
            self.high = max(self.high, float(numbers.max()))

    def count(self, numbers: Array) -> None:
        """Adds numbers to the histogram. The range includes them already."""
        if self.high - self.low >= _TINY:
            found, _ = np.histogram(numbers[numbers != 0].astype(np.float64), BINS, (self.low, self.high))
            self.counts = found if self.counts is None else self.counts + found

    def codes(self) -> ActivationCodes:
        """The codes whose numbers have the least mean squared error.

        A bound of the range may move towards 0, to at least a quarter: numbers beyond it become the nearest bound, and
        the other numbers have smaller steps. The error of rounding to a step `s` counts as `s² / 12`, and 0 is exact.
        """
        if self.counts is None:
            return ActivationCodes.of(self.low, self.high)
        middles = self.low + (np.arange(BINS) + 0.5) * (self.high - self.low) / BINS
        lows, highs = _PARTS * self.low, _PARTS * self.high
        below = (np.maximum(lows[:, None] - middles, 0) ** 2) @ self.counts
        above = (np.maximum(middles - highs[:, None], 0) ** 2) @ self.counts
        rounded = self.counts.sum() * ((highs - lows[:, None]) / 255) ** 2 / 12
        best = np.unravel_index((below[:, None] + above + rounded)[::-1, ::-1].argmin(), rounded.shape)
        return ActivationCodes.of(float(lows[::-1][best[0]]), float(highs[::-1][best[1]]))
