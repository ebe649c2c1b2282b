"""How long a plan takes for a run, alone or in turns with onnxruntime."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from compiler import Plan

__all__ = ["Subject", "Timing", "time_subject"]

ROUNDS = (5, 2000)


@dataclass(frozen=True)
class Timing:
    """Median times of a run in milliseconds; a spread is half the distance of the quartiles over the median.

    The last three are of onnxruntime, where there is a model to run in it.
    """

    model: str
    threads: int
    rounds: int
    milliseconds: float
    spread: float
    reference_milliseconds: float | None = None
    reference_spread: float | None = None
    ratio: float | None = None


@dataclass(frozen=True)
class Subject:
    """What is timed: a plan, the inputs, and the model to run beside it in onnxruntime."""

    name: str
    plan: Plan
    inputs: dict[str, Any]
    model: Path | None


def time_subject(subject: Subject, threads: int, seconds: float, beside: bool) -> Timing:
    """Time a subject for so many seconds, `beside` onnxruntime where its model is known."""
    import compiler
    from compiler.reference import Reference

    session = compiler.load(subject.plan, threads=threads)
    runs = [lambda: session.run(subject.inputs)]
    if beside and subject.model is not None:
        reference = Reference(subject.model, threads)
        runs.append(lambda: reference.run(subject.inputs))
    ours, *theirs = _take_turns(runs, seconds)
    alone = Timing(subject.name, threads, len(ours), *_median_and_spread(ours))
    if not theirs:
        return alone
    middle, spread = _median_and_spread(*theirs)
    return replace(alone, reference_milliseconds=middle, reference_spread=spread, ratio=alone.milliseconds / middle)


def _take_turns(runs: Sequence[Callable[[], Any]], seconds: float) -> list[list[float]]:
    """Milliseconds of each run of each, after two that are not counted."""
    for run in [*runs, *runs]:
        run()
    times: list[list[float]] = [[] for _ in runs]
    least, most = ROUNDS
    end = time.perf_counter() + seconds
    while len(times[0]) < least or (time.perf_counter() < end and len(times[0]) < most):
        for run, taken in zip(runs, times, strict=True):
            start = time.perf_counter()
            run()
            taken.append(1e3 * (time.perf_counter() - start))
    return times


def _median_and_spread(times: list[float]) -> tuple[float, float]:
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, (high - low) / 2 / middle
