"""The numbers of each file of results that the page compares: the history of a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from compiler.zoo.pace import TIME, Pace
from compiler.zoo.records import PRECISION, ResultName, records_of
from compiler.zoo.results import ending_of
from compiler.zoo.task_arguments import Profile

if TYPE_CHECKING:
    from compiler.zoo.facts import Facts
    from compiler.zoo.records import Record

__all__ = ["NUMBERS", "Run", "history_of", "level_of", "milliseconds_of"]

NUMBERS = ("share", "plan_bytes", "peak_bytes", "operations", "milliseconds", "percent", "seconds")
"""The names of the numbers.

`share` is the largest difference from onnxruntime as a multiple of the tolerance. `milliseconds` is the time of a run
in a profile, `percent` the time of a plan in percent of onnxruntime's, and `seconds` the time of a check.
"""

_TIMED = "pinned, cpu"
"""The check of the plans that `--time` times."""


class Run:
    """A file of results by its `name`. `checks` holds the records of its checks by model and task."""

    def __init__(self, name: str, lines: Sequence[dict[str, Any]]) -> None:
        self.name, self.lines = name, lines
        records = records_of(lines)
        self.checks = {name: record for name, record in records.items() if not name.is_time and name.task != PRECISION}
        self._profiles = dict(_profiles_of(lines))
        self._times = {name.model: record.facts for name, record in records.items() if name.is_time and record.facts}

    @property
    def tasks(self) -> dict[str, None]:
        """The tasks of its checks, such as `pinned, cpu`, in the order of the file."""
        return dict.fromkeys(name.task for name in self.checks)

    def pace(self, name: ResultName, level: str) -> Pace | None:
        """The time of a plan beside onnxruntime, if it was measured at a level of the processor."""
        times = self._times.get(name.model) if name.task == _TIMED else None
        return Pace.of_fact(times.levels.get(level, {}).get(TIME)) if times else None

    def numbers(self, name: ResultName, level: str) -> dict[str, float | None]:
        """The numbers of a check; `None` for a number that the file lacks.

        The peak memory and the time in percent depend on the level of the processor.
        """
        record = self.checks.get(name)
        if record is None:
            return dict.fromkeys(NUMBERS)
        plan, at_level = _facts_at(record, level)
        pace = self.pace(name, level)
        return {
            **{name: plan.get(name) for name in ("plan_bytes", "operations")},
            "share": record.error,
            "peak_bytes": at_level.get("peak_bytes"),
            "milliseconds": self._profiles.get(name),
            "percent": pace.percent if pace else None,
            "seconds": record.seconds,
        }


def history_of(name: ResultName, runs: Iterable[Run], facts: Facts | None) -> dict[str, list[float | None]]:
    """The numbers of a check in each file, with the level of these facts. Numbers that no file has are left out."""
    rows = [run.numbers(name, level_of(facts)) for run in runs]
    found = {name: [row[name] for row in rows] for name in NUMBERS}
    return {name: values for name, values in found.items() if any(each is not None for each in values)}


def level_of(facts: Facts | None) -> str:
    """The level of the processor that facts have; empty if they have none."""
    return next(iter(facts.levels), "") if facts else ""


def milliseconds_of(profile: Mapping[str, Any]) -> float:
    """The time of a run in a profile. The time of a step includes that of its blocks."""
    return float(1e3 * sum(step["seconds"] for step in profile["steps"] if not step["depth"]) / profile["runs"])


def _profiles_of(lines: Iterable[Mapping[str, Any]]) -> Iterable[tuple[ResultName, float]]:
    for line in lines:
        profile, ending = Profile.named(line["model"], line["what"]), ending_of(line)
        if profile and ending.kind == "done":
            yield ResultName(line["model"], f"{profile.shapes}, {profile.device}"), milliseconds_of(ending.result)


def _facts_at(record: Record, level: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The facts of a plan, and those that depend on the level; none if the check had no plan."""
    return (record.facts.plan, record.facts.levels.get(level, {})) if record.facts else ({}, {})
