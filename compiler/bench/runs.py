"""The times of repeated runs of a function. Tools on machines without ONNX use it, too: it imports no package."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["timed_runs"]


def timed_runs(run: Callable[[], object], seconds: float) -> list[float]:
    """Milliseconds of each run: one run, and more until so many seconds have passed."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - start))
    return times
