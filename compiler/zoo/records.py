"""The records of a file of results or of facts, which `candlec zoo compare` compares: one for each model and task."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.accuracy.precision import Errors
from compiler.zoo.facts import Facts, facts_of_check
from compiler.zoo.facts_file import read_facts
from compiler.zoo.outcome import Result, together
from compiler.zoo.outcome_judgment import outcomes_of
from compiler.zoo.pace import TIME
from compiler.zoo.results import ending_of, read_results
from compiler.zoo.task_arguments import Bench, Check, Profile, Time
from compiler.zoo.time_folder import Timed, last_measurement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from compiler.processes.ending import Ending
    from compiler.zoo.outcome import Shapes

__all__ = ["MEASURED", "PRECISION", "Record", "ResultName", "read_records", "records_of"]

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
    """A result in a file. `error` is `None` if the file has no error, or an infinite one.

    The results in a file of facts are acceptable, because a person has accepted them.

    `seconds` is the time of a task; `None` for one that takes a given time. The time of a plan is one of the `facts`.
    """

    result: Result | str
    is_acceptable: bool
    seconds: float | None
    error: float | None = None
    facts: Facts | None = None


def read_records(path: Path) -> dict[ResultName, Record]:
    """The records of a file of results, or of a file of facts, whose name ends with `.toml`.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is another kind of file.
    """
    if path.suffix != ".toml":
        lines = read_results(path)
        if lines and all(Bench.is_named(line["what"]) for line in lines):
            raise ValueError(f"{path} has only times of `candlec bench`: `zoo run --time` writes times to compare")
        return records_of(lines)
    known = read_facts(path)
    try:
        found = ((name, shapes, facts) for name, each in known.models.items() for shapes, facts in each.items())
        return dict(pair for each in found for pair in _of_facts(known.device, *each))
    except ValueError as error:
        raise ValueError(f"{path} is not a file of facts: {error}") from error


def _of_facts(device: str, model: str, shapes: Shapes, facts: Facts) -> Iterator[tuple[ResultName, Record]]:
    """The record of a model's check, and those of its times."""
    levels = {
        level: {name: fact for name, fact in each.items() if name != TIME} for level, each in facts.levels.items()
    }
    status = Result.of_text(facts.status)
    yield ResultName(model, f"{shapes}, {device}"), Record(status, True, None, facts=Facts(facts.plan, levels))
    for level, each in facts.levels.items():
        if TIME in each:
            pace = Facts({}, {level: {TIME: each[TIME]}})
            yield ResultName(model, f"{TIME}, {level}"), Record(MEASURED, True, None, facts=pace)


def records_of(lines: Iterable[Mapping[str, Any]]) -> dict[ResultName, Record]:
    """The records of the lines of a file of results.

    Profiles have none, because they repeat no former result, and neither have the times of `candlec bench`.
    """
    found: dict[ResultName, Record] = {}
    timed: dict[tuple[str, str], dict[int, Ending]] = {}
    for line in lines:
        model, what = line["model"], line["what"]
        if time := Time.named(model, what):
            timed.setdefault((model, time.level), {})[time.number] = ending_of(line)
        elif check := Check.named(model, what):
            found.update(_of_check(check, line))
        elif not Profile.named(model, what) and not Bench.is_named(what):
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
