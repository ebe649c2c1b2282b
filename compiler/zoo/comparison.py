"""The changes between two files of results: verdicts, errors, facts and times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from compiler.accuracy.compare import worst_of
from compiler.accuracy.precision import ROUNDING
from compiler.zoo.drift import changed_facts, changed_times, growth_of, text_of
from compiler.zoo.facts import STATUS
from compiler.zoo.outcome import Result
from compiler.zoo.pace import Pace, is_slower_run, slower_starts
from compiler.zoo.records import MEASURED, PRECISION
from compiler.zoo.rounding import AT_MOST, PERCENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compiler.zoo.facts import Facts
    from compiler.zoo.records import Record, ResultName

__all__ = ["KINDS", "Change", "changes", "levels_apart"]

Kind = Literal["verdict", "error", "fact", "time"]
KINDS: tuple[Kind, ...] = ("verdict", "error", "fact", "time")
"""The kinds of changes, the most important first."""

_MOST_GROWTH = 1.1
"""An error has changed if it is larger or smaller by more than this factor, because rounding depends on the kernels."""
_LEAST_SHARE = 0.01
"""Differences that both are below this part of the tolerance have not changed."""
_MOST_SLOWER, _LEAST_SECONDS = 1.5, 1.0
"""A check's time has changed if it is longer or shorter by more than this factor, and by at least so many seconds."""
_SHARE = "share of onnxruntime's time"
"""The name of the time of a plan."""
_COSTS = {"plan_bytes", "constant_bytes", "packed_bytes", "unpacked_bytes", "peak_bytes"} | {
    *("operations", "steps", "host_steps", "no_kernel", "unknown_steps", "added", PERCENT, AT_MOST)
}
"""The facts that are worse if they grow. No other fact is better or worse."""


@dataclass(frozen=True)
class Change:
    """A change of a result. `effect` is `worse`, `better`, or empty for a fact that is neither.

    `before` and `after` are JSON data: a text, a number, or the changed numbers by name. `None` stands for
    a missing result, number or text.
    """

    kind: Kind
    name: ResultName
    what: str
    before: Any
    after: Any
    effect: Literal["worse", "better", ""] = ""

    @property
    def texts(self) -> tuple[str, str]:
        """The values before and after, in words."""
        times = {_SHARE: "{} %", "time": "{:.1f} s"}.get(self.what, "{:g}").format
        shown = {"error": _error_text, "time": times}.get(self.kind, text_of)
        return shown(self.before), shown(self.after)

    @property
    def factor(self) -> float:
        """The factor by which a number has changed, in either direction; 1 for other values."""
        if not isinstance(self.before, int | float) or not isinstance(self.after, int | float):
            return 1.0
        low, high = sorted((self.before, self.after))
        return high / low if low > 0 else math.inf

    @property
    def data(self) -> dict[str, Any]:
        """The change as JSON."""
        values = {"what": self.what, "before": self.before, "after": self.after, "effect": self.effect}
        return {"kind": self.kind, "model": self.name.model, "task": self.name.task, **values}


def changes(old: Mapping[ResultName, Record], new: Mapping[ResultName, Record]) -> list[Change]:
    """The changes, the most important first: by kind, then worse ones before better ones, then by their factor."""
    found = [each for name in {**old, **new} for each in _changes_of(name, old.get(name), new.get(name))]
    effects = ("worse", "", "better")
    return sorted(found, key=lambda each: (KINDS.index(each.kind), effects.index(each.effect), -each.factor))


def levels_apart(
    old: Mapping[ResultName, Record], new: Mapping[ResultName, Record]
) -> tuple[list[str], list[str]] | None:
    """The levels of processors in both files, if they have none in common, so that no kernels can be compared."""
    before, after = (
        {level for record in records.values() if record.facts for level in record.facts.levels}
        for records in (old, new)
    )
    return (sorted(before), sorted(after)) if before and after and not before & after else None


def _changes_of(name: ResultName, old: Record | None, new: Record | None) -> Iterator[Change]:
    """The changes of a result. A result that is missing now is worse, except a time, which only some runs measure."""
    if old is None or new is None:
        if name.is_time and (new is None or new.is_acceptable):
            return
        before, after = (None if each is None else str(each.result) for each in (old, new))
        is_worse = new is None or not new.is_acceptable
        yield Change("verdict", name, "verdict", before, after, "worse" if is_worse else "")
        return
    yield from _judgments(name, old, new)
    yield from _errors(name, old, new)
    if old.facts is not None and new.facts is not None:
        yield from _facts(name, old.facts, new.facts)
    yield from _times(name, old, new)


def _judgments(name: ResultName, old: Record, new: Record) -> Iterator[Change]:
    """The change of the verdict, or only of the judgment on it, which depends on INDEX.json and on a baseline."""
    before, after = str(old.result), str(new.result)
    if before != after:
        yield Change("verdict", name, "verdict", before, after, _effect_of(old, new))
    elif old.is_acceptable != new.is_acceptable:
        said = {True: f"{after}, acceptable", False: f"{after}, not acceptable"}
        effect: Literal["worse", "better"] = "better" if new.is_acceptable else "worse"
        yield Change("verdict", name, "verdict", said[old.is_acceptable], said[new.is_acceptable], effect)


def _effect_of(old: Record, new: Record) -> Literal["worse", "better", ""]:
    if not isinstance(old.result, Result) or not isinstance(new.result, Result):
        is_worse = old.result == MEASURED
        return "worse" if is_worse else "better" if new.result == MEASURED else ""
    before, after = old.result.verdict, new.result.verdict
    return "" if before == after else "worse" if worst_of([before, after]) == after else "better"


def _errors(name: ResultName, old: Record, new: Record) -> Iterator[Change]:
    """The change of the largest difference, as a multiple of the tolerance, or of the rounding error."""
    if old.error is None or new.error is None:
        return
    is_rounding = name.task == PRECISION
    what, least = ("rounding error", ROUNDING) if is_rounding else ("difference", _LEAST_SHARE)
    change = Change("error", name, what, old.error, new.error, "worse" if new.error > old.error else "better")
    if change.factor > _MOST_GROWTH and max(old.error, new.error) > least:
        yield change


def _facts(name: ResultName, old: Facts, new: Facts) -> Iterator[Change]:
    """The changes of facts, without the status, which is the verdict."""
    for fact, before, after in changed_facts(old, new):
        if fact != STATUS:
            growth = growth_of(before, after) if fact.rpartition(".")[2] in _COSTS else 0
            yield Change("fact", name, fact, before, after, "worse" if growth > 0 else "better" if growth < 0 else "")


def _times(name: ResultName, old: Record, new: Record) -> Iterator[Change]:
    """The changes of the times of plans beyond the band, and of the time that the task took."""
    if old.facts is not None and new.facts is not None:
        for _, *values in changed_times(old.facts, new.facts):
            before, after = map(Pace.of_fact, values)
            if before is not None and after is not None:
                yield from _paces(name, before, after)
    if old.seconds is None or new.seconds is None:
        return
    change = Change("time", name, "time", old.seconds, new.seconds)
    if change.factor > _MOST_SLOWER and abs(old.seconds - new.seconds) >= _LEAST_SECONDS:
        yield change


def _paces(name: ResultName, before: Pace, after: Pace) -> Iterator[Change]:
    """The changes of the time of a plan, and of the classes of the times before its first run."""
    if is_slower_run(before, after) or is_slower_run(after, before):
        yield Change("time", name, _SHARE, before.percent, after.percent)
    for step in [*slower_starts(before, after), *slower_starts(after, before)]:
        yield Change("time", name, f"{step} ÷ session", before.starts[step].factor, after.starts[step].factor)


def _error_text(error: float) -> str:
    return f"{error:.3g}"
