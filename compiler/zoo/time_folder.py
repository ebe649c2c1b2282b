"""The times of the plans of a folder, compared with onnxruntime, and the second measurement of slower ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from compiler.zoo import tasks
from compiler.zoo.facts import Facts
from compiler.zoo.pace import STARTS, TIME, Pace, is_slower
from compiler.zoo.results import Results
from compiler.zoo.task_arguments import Time
from compiler.zoo.task_runs import endings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiler.processes.ending import Ending
    from compiler.zoo.drift import FactsByModel
    from compiler.zoo.facts import KnownFacts
    from compiler.zoo.index import Entry
    from compiler.zoo.task_runs import TaskProgress, TaskSettings

__all__ = ["Timed", "last_measurement", "time_problems", "times", "with_times"]

_PROCESSES = 3
"""The number of processes of a measurement. The processes of a second measurement have the numbers after it."""


@dataclass(frozen=True)
class Timed:
    """The pace of a model at a level; `None` if it could not be timed.

    `problem` says why not. `ending` is how the last process of the measurement ended.
    """

    level: str
    pace: Pace | None
    problem: str
    ending: Ending

    @classmethod
    def of(cls, level: str, endings: Sequence[Ending]) -> Timed:
        """The result of the processes of a measurement. Only the last process may have failed."""
        last = endings[-1]
        if last.kind != "done":
            return cls(level, None, f"it cannot be timed: {last.sentence}", last)
        times = [each.result for each in endings]
        quotients = [each["plan"] / each["onnxruntime"] for each in times]
        known = [name for name in STARTS if all(name in each for each in times)]  # earlier versions do not measure them
        starts = {name: [each[name] / each["session"] for each in times] for name in known}
        return cls(level, Pace.of(quotients, starts), "", last)

    def __str__(self) -> str:
        return "failed" if self.pace is None else f"{self.pace} of onnxruntime's time"

    @property
    def data(self) -> dict[str, Any]:
        """The measurement as JSON."""
        return {"level": self.level, **(self.pace.fact if self.pace else {"problem": self.problem})}


def times(
    checked: Mapping[Entry, Facts],
    settings: TaskSettings,
    progress: TaskProgress | None = None,
    known: KnownFacts | None = None,
) -> dict[str, Timed]:
    """Time the models that have a plan, one process at a time. `checked` has the facts of their pinned shapes.

    A model that is slower than its `known` time allows is timed again, and the second measurement counts.

    Raises: as `endings_of`.
    """
    levels = {entry: next(iter(facts.levels)) for entry, facts in checked.items() if facts.has_plan}
    alone = replace(settings, jobs=1, fresh=True)
    _forget(levels, alone)
    found = _measured(levels, range(1, _PROCESSES + 1), alone, progress)
    slower = {entry: level for entry, level in levels.items() if known and _is_slower(entry, found[entry.name], known)}
    return found | _measured(slower, range(_PROCESSES + 1, 2 * _PROCESSES + 1), alone, progress)


def last_measurement(endings: Mapping[int, Ending]) -> list[Ending]:
    """The endings of the last measurement of a model, which is the first or the second, from its endings by number."""
    second = [ending for number, ending in sorted(endings.items()) if number > _PROCESSES]
    return second or [ending for _, ending in sorted(endings.items())]


def time_problems(times: Mapping[str, Timed]) -> dict[str, str]:
    """The models that could not be timed, and why not."""
    return {name: each.problem for name, each in times.items() if each.problem}


def with_times(found: FactsByModel, timed: Mapping[str, Timed]) -> FactsByModel:
    """The facts of models with the times of their pinned shapes."""
    made = {name: dict(by_shapes) for name, by_shapes in found.items()}
    for name, each in timed.items():
        if each.pace is not None:
            facts = made[name]["pinned"]
            level = {**facts.levels.get(each.level, {}), TIME: each.pace.fact}
            made[name]["pinned"] = Facts(facts.plan, {**facts.levels, each.level: level})
    return made


def _forget(levels: Mapping[Entry, str], settings: TaskSettings) -> None:
    """Remove the former lines of these models from the file of results, except those that count with `resume`."""
    if settings.results is None:
        return
    results, numbers = Results(settings.results), range(1, 2 * _PROCESSES + 1)
    asked = [Time(entry, level, number, settings.compiling) for entry, level in levels.items() for number in numbers]
    known = [each for each in asked if settings.resume and results.ending(each, settings.limits) is not None]
    results.begin(each for each in asked if each not in known)


def _measured(
    levels: Mapping[Entry, str], numbers: Iterable[int], settings: TaskSettings, progress: TaskProgress | None
) -> dict[str, Timed]:
    """The measurements of models with these numbers of processes. A model that fails is not timed any more."""
    endings: dict[Entry, list[Ending]] = {entry: [] for entry in levels}
    for number in numbers:
        whole = (entry for entry, mine in endings.items() if all(each.kind == "done" for each in mine))
        asked = [Time(entry, levels[entry], number, settings.compiling) for entry in whole]
        if not asked:
            break
        for each, ending in zip(asked, endings_of(tasks.time, asked, settings, _judge, progress), strict=True):
            endings[each.entry].append(ending)
    return {entry.name: Timed.of(levels[entry], mine) for entry, mine in endings.items()}


def _judge(asked: Time, ending: Ending) -> tuple[bool, str]:
    made = Timed.of(asked.level, [ending])
    return not made.problem, str(made)


def _is_slower(entry: Entry, found: Timed, known: KnownFacts) -> bool:
    """Whether a model is slower than its recorded time allows."""
    recorded = known.models.get(entry.name, {}).get("pinned", Facts({})).levels.get(found.level, {})
    before = Pace.of_fact(recorded.get(TIME))
    return before is not None and found.pace is not None and is_slower(before, found.pace)
