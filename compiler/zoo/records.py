"""The records of a file of results, which `candlec zoo compare` compares: one for each model and task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.accuracy.precision import Errors
from compiler.zoo.asked import Check, Time
from compiler.zoo.facts import Facts, facts_of_check
from compiler.zoo.judge import outcomes_of
from compiler.zoo.outcome import together
from compiler.zoo.pace import TIME
from compiler.zoo.results import ending_of
from compiler.zoo.timed import Timed, last_measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from compiler.processes.ending import Ending
    from compiler.zoo.outcome import Result

__all__ = ["MEASURED", "PRECISION", "Record", "ResultName", "records_of"]

MEASURED = "measured"
"""The result of a measurement that came to its end."""
PRECISION = "precision"
"""The task that measures rounding errors."""


@dataclass(frozen=True)
class ResultName:
    """The name of a result: a model with `task`.

    The task is the kind of shapes and the device of a check, `precision`, or `time` and a level.
    """

    model: str
    task: str

    @property
    def is_time(self) -> bool:
        """Whether the result is the time of a plan."""
        return self.task.startswith(f"{TIME}, ")


@dataclass(frozen=True)
class Record:
    """A result in a file of results. `error` is `None` if the file has no error, or an infinite one.

    `seconds` is the time of a task; `None` for one that takes a given time. The time of a plan is one of the `facts`.
    """

    result: Result | str
    is_acceptable: bool
    seconds: float | None
    error: float | None = None
    facts: Facts | None = None


def records_of(lines: Iterable[Mapping[str, Any]]) -> dict[ResultName, Record]:
    """The records of the lines of a file of results."""
    found: dict[ResultName, Record] = {}
    timed: dict[tuple[str, str], dict[int, Ending]] = {}
    for line in lines:
        model, what = line["model"], line["what"]
        if time := Time.named(model, what):
            timed.setdefault((model, time.level), {})[time.number] = ending_of(line)
        elif check := Check.named(model, what):
            found.update(_of_check(check, line))
        else:
            found[ResultName(model, what)] = _of_measurement(line)
    return found | dict(_of_times(timed))


def _of_check(check: Check, line: Mapping[str, Any]) -> Iterator[tuple[ResultName, Record]]:
    """The records of a check, one for each kind of shapes."""
    ending = ending_of(line)
    outcomes = outcomes_of(check, ending)
    facts = facts_of_check(ending, outcomes)
    for shapes, each in outcomes.items():
        worst, seconds = together(each), sum(one.seconds for one in each)
        share = worst.share if math.isfinite(worst.share) else None
        name = ResultName(check.entry.name, f"{shapes}, {check.device}")
        yield name, Record(worst, line["ok"], seconds, share, facts.get(shapes))


def _of_measurement(line: Mapping[str, Any]) -> Record:
    """The record of a measurement of rounding errors."""
    ending = ending_of(line)
    errors = None if ending.result is None else Errors(**ending.result).plan
    return Record(MEASURED if ending.kind == "done" else line["result"], line["ok"], ending.seconds, errors)


def _of_times(timed: Mapping[tuple[str, str], Mapping[int, Ending]]) -> Iterator[tuple[ResultName, Record]]:
    """The records of the times of models, by model and level."""
    for (model, level), endings in timed.items():
        made = Timed.of(level, last_measurement(endings))
        facts = Facts({}, {level: {TIME: made.pace.fact}}) if made.pace else None
        result = str(made) if made.problem else MEASURED
        yield ResultName(model, f"{TIME}, {level}"), Record(result, not made.problem, None, facts=facts)
