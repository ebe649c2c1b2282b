"""The time of one run as a multiple of another's, measured in turns, with its spread."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.bench.runs import timed_runs

__all__ = ["Ratio", "Run", "Timer", "quotients", "ratio"]

Run = Callable[[], object]

Timer = Callable[[Run, Run, int], Sequence[float]]
"""A function that times two runs in so many turns: the time of the first ÷ the time of the second, for each turn."""

_TURNS, _MORE_TURNS, _SECONDS = 9, 27, 0.05
REST = 0.03
"""Seconds before a turn, so that the idle threads of the other run stop spinning. onnxruntime's spin for 20 ms."""
LEAST = 1.05
"""A run counts as slower if it takes more than this multiple of the other's time, and more than the noise explains."""


@dataclass(frozen=True)
class Ratio:
    """The median of quotients, and their quartiles."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, found: Sequence[float], scale: float = 1.0) -> Ratio:
        """The ratio of these quotients, divided by `scale`."""
        low, middle, high = (each / scale for each in statistics.quantiles(found, n=4))
        return cls(middle, low, high)

    def exceeds(self, bound: float) -> bool | None:
        """Whether the ratio is above a bound; `None` if the bound is between the quartiles."""
        return None if self.low <= bound <= self.high else self.middle > bound

    @property
    def bound(self) -> float:
        """The ratio that divides the increase into halves."""
        return math.sqrt(self.middle)

    def __str__(self) -> str:
        """`1.52 (1.48 to 1.57)`."""
        return f"{self.middle:.2f} ({self.low:.2f} to {self.high:.2f})"


def quotients(run: Run, other: Run, turns: int) -> list[float]:
    """The shortest time of a run in each turn ÷ the other's. The two begin a turn alternately."""
    found: list[float] = []
    for turn in range(turns):
        pair = (run, other) if turn % 2 == 0 else (other, run)
        times = [_shortest(each) for each in pair]
        found.append(times[turn % 2] / times[1 - turn % 2])
    return found


def _shortest(run: Run) -> float:
    """The shortest time of a run in one turn."""
    time.sleep(REST)
    return min(timed_runs(run, _SECONDS))


def ratio(run: Run, other: Run, bound: float, timer: Timer = quotients, scale: float = 1.0) -> Ratio:
    """The time of a run ÷ the other's and ÷ `scale`. If the noise hides whether it exceeds the bound, in more turns."""
    found = Ratio.of(timer(run, other, _TURNS), scale)
    return Ratio.of(timer(run, other, _MORE_TURNS), scale) if found.exceeds(bound) is None else found
