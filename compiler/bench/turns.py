"""Times several engines on one case in turns, so that a busy machine affects all of them equally."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.accuracy.reference import ReferenceFailed
from compiler.bench.answers import Answers
from compiler.bench.engines import ENGINES
from compiler.bench.runs import timed_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compiler.bench.engines import Case, Run

__all__ = ["Times", "Turns", "time_in_turns"]

REST = 0.1
"""Seconds before a turn, so that the idle threads of another engine stop spinning. onnxruntime's spin for more than
20 ms."""
TURN = 0.1
"""Seconds of one engine's turn."""
LEAST, MOST = 5, 5000
"""The smallest and largest number of runs of each engine."""


@dataclass(frozen=True)
class Times:
    """Milliseconds of a run: the median and the quartiles over `runs` runs in one process."""

    milliseconds: float
    low: float
    high: float
    runs: int


@dataclass(frozen=True)
class Turns:
    """The times of the engines, and the errors of those without times."""

    times: dict[str, Times]
    failed: dict[str, str]


def time_in_turns(case: Case, engines: Iterable[str], threads: int, seconds: float) -> Turns:
    """Load a case in every engine, check the outputs, and run all for `seconds` in total, each at least a few times."""
    runs, failed = _loaded(case, engines, threads)
    taken = _take_turns(runs, seconds)
    return Turns({name: _summary(times) for name, times in taken.items()}, failed)


def _loaded(case: Case, engines: Iterable[str], threads: int) -> tuple[dict[str, Run], dict[str, str]]:
    """The engines that compute the case, and the errors of the others."""
    runs: dict[str, Run] = {}
    failed: dict[str, str] = {}
    answers = Answers(case)
    for name in engines:
        engine = ENGINES[name]
        try:
            run = engine.load(case, threads)
            outputs = run()
            if engine.is_checked:
                answers.check(engine.title, outputs)
            runs[name] = run
        except ReferenceFailed as error:
            failed[name] = str(error)
    return runs, failed


def _take_turns(runs: Mapping[str, Run], seconds: float) -> dict[str, list[float]]:
    """Milliseconds of every run, by engine."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + seconds
    while _is_too_few(taken) or (time.perf_counter() < end and min(map(len, taken.values())) < MOST):
        for name, run in runs.items():
            time.sleep(REST)
            taken[name] += _one_turn(run)
    return taken


def _is_too_few(taken: Mapping[str, list[float]]) -> bool:
    return any(len(times) < LEAST for times in taken.values())


def _one_turn(run: Run) -> list[float]:
    """Milliseconds of the runs of one turn. A short first run does not count, because the caches are cold."""
    times = timed_runs(run, TURN)
    return times[1:] or times


def _summary(times: list[float]) -> Times:
    low, middle, high = statistics.quantiles(times, n=4)
    return Times(middle, low, high, len(times))
