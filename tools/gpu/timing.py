"""Times several runs in turns, so that a busy machine affects all of them equally."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from compiler.bench.runs import timed_runs

Run = Callable[[], Any]
TURN = 0.02
"""Seconds of one turn. A longer run runs once in each turn."""
LEAST = 3
"""The least number of turns of every run."""


def in_turns(runs: Mapping[str, Run], seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds of each run: `median`, the quartiles `low` and `high`, and the number of timed `runs`.

    Each run first runs once untimed. `seconds` limits the total time, except for the least number of turns.
    """
    for run in runs.values():
        run()
    taken: dict[str, list[float]] = {name: [] for name in runs}
    end, turns = time.perf_counter() + seconds, 0
    while turns < LEAST or time.perf_counter() < end:
        for name, run in runs.items():
            taken[name] += timed_runs(run, TURN)
        turns += 1
    return {name: summary(times) for name, times in taken.items()}


def summary(times: list[float]) -> dict[str, float]:
    """The median, the quartiles and the number of times."""
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else 3 * times
    return {"median": middle, "low": low, "high": high, "runs": len(times)}
