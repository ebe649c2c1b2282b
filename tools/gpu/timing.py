"""Times of several runs that take turns, so that a machine which is disturbed disturbs all of them alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

Run = Callable[[], Any]
TURN = 0.02
"""Seconds of one turn of a run; a longer run is made once in each."""
LEAST = 3
"""Turns of every run."""


def in_turns(runs: Mapping[str, Run], seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of each run: `median`, the quartiles `low` and `high`, and how many `runs` were timed.

    Each run is made once before, and `seconds` bounds them all but for the least number of turns.
    """
    for run in runs.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in runs}
    end, turns = time.perf_counter() + seconds, 0
    while turns < LEAST or time.perf_counter() < end:
        for name, run in runs.items():
            taken[name] += _turn(run)
        turns += 1
    return {name: summary(times) for name, times in taken.items()}


def _turn(run: Run) -> list[float]:
    """Milliseconds of the runs of one turn."""
    times: list[float] = []
    end = time.perf_counter() + TURN
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def summary(times: list[float]) -> dict[str, float]:
    """The median, the quartiles and the number of some times."""
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else 3 * times
    return {"median": middle, "low": low, "high": high, "runs": len(times)}
