"""The times before the first run: the compilation, the load of the plan, and onnxruntime's creation of a session."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

import compiler
from compiler.bench.engines import ENGINES, PLAN
from compiler.zoo.shapes import pinned

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from compiler.bench.engines import Case

__all__ = ["SESSION", "start_times"]

SESSION = "session"
"""The name of onnxruntime's creation of a session."""
_LEAST, _MOST, _SECONDS = 2, 7, 2.0
"""The smallest and largest number of turns, and the seconds after which none begins."""


def start_times(model: Path, case: Case, options: compiler.Options, threads: int) -> dict[str, float]:
    """The least milliseconds of each step in several turns. Each step begins with the files of the model or plan."""
    steps: dict[str, Callable[[], object]] = {
        SESSION: lambda: ENGINES["onnxruntime"].load(case, threads),
        "load": lambda: ENGINES[PLAN].load(case, threads),
        "compile": lambda: compiler.compile(pinned(model, case.inputs), options),
    }
    taken: dict[str, list[float]] = {name: [] for name in steps}
    began = time.perf_counter()
    for turn in range(_MOST):
        if turn >= _LEAST and time.perf_counter() - began > _SECONDS:
            break
        for name, step in steps.items():
            taken[name].append(_milliseconds(step))
    return {name: min(times) for name, times in taken.items()}


def _milliseconds(step: Callable[[], object]) -> float:
    """The time of a step, without the time to release what it made."""
    gc.collect()
    began = time.perf_counter()
    made = step()
    ended = time.perf_counter()
    del made
    return 1e3 * (ended - began)
