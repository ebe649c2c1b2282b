"""The results of a benchmark: times of one case with one number of threads, and means over many."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from compiler.accuracy.reference import ReferenceFailed
from compiler.bench.cold import Cold, measure_cold
from compiler.bench.engines import ENGINES, PLAN
from compiler.bench.turns import Times, Turns, time_in_turns
from compiler.processes.fresh import in_fresh_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from compiler.bench.engines import Case

__all__ = ["BEST", "Timing", "cold_means", "means", "time_case"]

BEST = "best"
"""The name that stands for the fastest other engine of a model."""

DISAGREEMENT = 1.1
"""Two processes agree if the quotient of their ratios is at most this number."""


@dataclass(frozen=True)
class Timing:
    """The times of each engine by process, the errors of failed engines, and cold starts."""

    model: str
    threads: int
    processes: tuple[Turns, ...]
    cold: dict[str, Cold] = field(default_factory=dict)

    @property
    def failed(self) -> dict[str, str]:
        """The errors of engines without times."""
        return {name: why for turns in self.processes for name, why in turns.failed.items()}

    @property
    def engines(self) -> list[str]:
        """The engines with times."""
        return [name for name in self.processes[0].times if name not in self.failed]

    @property
    def compared(self) -> list[str]:
        """The other engines with times, and `BEST` if the case has several other engines."""
        others = [name for name in self.engines if name != PLAN]
        several = len(others) + len(self.failed) > 1
        return [*others, BEST] if others and several else others

    def milliseconds(self, engine: str) -> float:
        """The median of the processes' medians."""
        return statistics.median(turns.times[engine].milliseconds for turns in self.processes)

    def spread(self, engine: str) -> float:
        """Half the distance of the quartiles divided by the median; the largest of all processes."""
        times = [turns.times[engine] for turns in self.processes]
        return max((each.high - each.low) / 2 / each.milliseconds for each in times)

    def ratios(self, engine: str) -> list[float]:
        """Our time ÷ an engine's, or ÷ the shortest of the other engines' for `BEST`, for each process."""
        engines = [name for name in self.engines if name != PLAN] if engine == BEST else [engine]
        times = [turns.times for turns in self.processes]
        return [each[PLAN].milliseconds / min(each[name].milliseconds for name in engines) for each in times]

    def ratio(self, engine: str) -> float:
        """Our time ÷ an engine's: the median of the processes."""
        return statistics.median(self.ratios(engine))

    @property
    def is_settled(self) -> bool:
        """Whether the processes agree. Memory placement of code and data can slow down some of them."""
        found = [self.ratios(engine) for engine in self.engines]
        return all(max(ratios) <= DISAGREEMENT * min(ratios) for ratios in found)

    @property
    def stored(self) -> dict[str, Any]:
        """All measurements as JSON data, from which `of_stored` makes the same timing."""
        return asdict(self)

    @classmethod
    def of_stored(cls, data: Mapping[str, Any]) -> Timing:
        """The timing that `stored` describes."""
        processes = [
            Turns({name: Times(**times) for name, times in each["times"].items()}, each["failed"])
            for each in data["processes"]
        ]
        cold = {name: Cold(**each) for name, each in data["cold"].items()}
        return cls(data["model"], data["threads"], tuple(processes), cold)

    def data(self) -> dict[str, Any]:
        """The results as JSON data."""
        ratios = {engine: self.ratio(engine) for engine in self.compared}
        engines = {
            engine: {
                "milliseconds": self.milliseconds(engine),
                "spread": self.spread(engine),
                "processes": [vars(turns.times[engine]) for turns in self.processes],
                **({"cold": vars(self.cold[engine])} if engine in self.cold else {}),
            }
            for engine in self.engines
        }
        return {
            "model": self.model,
            "threads": self.threads,
            "engines": engines,
            "ratios": ratios,
            "settled": self.is_settled,
            "failed": self.failed,
        }


def time_case(
    case: Case,
    engines: Sequence[str],
    threads: int,
    seconds: float,
    processes: int = 1,
    *,
    cold: bool = False,
    on_phase: Callable[[str], None] = lambda _: None,
) -> Timing:
    """Time a case in this process, or in several fresh ones; in twice as many if these disagree.

    The function calls `on_phase` with the name of each phase before it begins, and never during a measurement.
    """
    for engine in engines:
        ENGINES[engine].prepare(case)
    phase = f"run with {threads} thread{'s' * (threads > 1)}"

    def measured(numbers: Iterable[int]) -> tuple[Turns, ...]:
        found = []
        for number in numbers:
            on_phase(f"{phase}, process {number}")
            found.append(in_fresh_process(time_in_turns, case, engines, threads, seconds))
        return tuple(found)

    if processes == 1:
        on_phase(phase)
        timing = Timing(case.name, threads, (time_in_turns(case, engines, threads, seconds),))
    else:
        timing = Timing(case.name, threads, measured(range(1, processes + 1)))
        if not timing.is_settled:
            more = measured(range(processes + 1, 2 * processes + 1))
            timing = Timing(case.name, threads, (*timing.processes, *more))
    if not cold:
        return timing
    return Timing(case.name, threads, timing.processes, _cold(case, timing.engines, threads, on_phase))


def _cold(case: Case, engines: Iterable[str], threads: int, on_phase: Callable[[str], None]) -> dict[str, Cold]:
    found: dict[str, Cold] = {}
    for engine in engines:
        on_phase(f"cold start of {ENGINES[engine].title}")
        try:
            found[engine] = measure_cold(case, engine, threads)
        except ReferenceFailed:
            continue
    return found


def means(timings: Iterable[Timing]) -> dict[str, dict[int, float]]:
    """The geometric mean of our time ÷ another engine's, by engine (or `BEST`) and number of threads."""
    return _means(timings, lambda timing: {engine: timing.ratio(engine) for engine in timing.compared})


def cold_means(timings: Iterable[Timing], what: str) -> dict[str, dict[int, float]]:
    """The same geometric mean for `load`, `first` or `peak` of cold starts."""

    def ratios(timing: Timing) -> dict[str, float]:
        ours = timing.cold.get(PLAN)
        if ours is None:
            return {}
        return {engine: getattr(ours, what) / getattr(each, what) for engine, each in timing.cold.items()}

    return _means(timings, ratios)


def _means(timings: Iterable[Timing], ratios: Callable[[Timing], Mapping[str, float]]) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, list[float]]] = {}
    for timing in timings:
        for engine, ratio in ratios(timing).items():
            if engine != PLAN:
                found.setdefault(engine, {}).setdefault(timing.threads, []).append(ratio)
    return {
        engine: {threads: statistics.geometric_mean(each) for threads, each in sorted(by_threads.items())}
        for engine, by_threads in found.items()
    }
