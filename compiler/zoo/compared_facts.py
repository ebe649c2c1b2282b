"""The comparison of the facts and times of checked models with a file of facts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compiler.zoo.drift import drifts, levels_missing, time_drifts
from compiler.zoo.time_folder import with_times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from compiler.zoo.drift import Drift, FactsByModel
    from compiler.zoo.facts import KnownFacts
    from compiler.zoo.suite import CaseOutcome
    from compiler.zoo.time_folder import Timed

__all__ = ["ComparedFacts", "compare_facts"]


@dataclass(frozen=True)
class ComparedFacts:
    """The drifts of models, sentences about what the file lacks, and the shorter times.

    `is_timed` says whether times were compared too.
    """

    drifts: Sequence[Drift] = ()
    missing: Sequence[str] = ()
    faster: Sequence[Drift] = ()
    by_model: dict[str, list[str]] = field(default_factory=dict)
    is_timed: bool = False

    @property
    def notes(self) -> list[str]:
        """The sentences about changes that are no errors."""
        return [*self.missing, *(f"{each.model}, {each}" for each in self.faster)]


def compare_facts(
    found: Sequence[CaseOutcome],
    times: Mapping[str, Timed] | None,
    known: KnownFacts,
    path: Path,
    only: Sequence[str],
) -> ComparedFacts:
    """Compare the facts of models, and their times if there are any, with those of a file."""
    facts: FactsByModel = {
        each.case.entry.name: {} if each.facts is None else {each.case.shapes: each.facts} for each in found
    }
    facts = with_times(facts, times or {})
    made, of_times = drifts(known, facts, only), time_drifts(known, facts)
    by_model: dict[str, list[str]] = {}
    for each in made:
        by_model.setdefault(each.model, []).append(each.problem)
    faster = [each for each in of_times if not each.is_new_time and not each.is_slower]
    new = [each for each in of_times if each.is_new_time]
    return ComparedFacts(made, _missing(known, facts, new, path), faster, by_model, times is not None)


def _missing(known: KnownFacts, facts: FactsByModel, new: Sequence[Drift], path: Path) -> list[str]:
    """The sentences about facts and times that the file lacks at the level of this processor. `new` holds the times."""
    lacking = [("facts", level, len(models)) for level, models in levels_missing(known, facts).items()]
    by_level: dict[str, list[Drift]] = {}
    for each in new:
        by_level.setdefault(each.fact.partition(".")[0], []).append(each)
    lacking += [("time", level, len(times)) for level, times in by_level.items()]
    return [
        f"{path} has no {what} of {_counted(count, 'model')} at the level {level} of this processor"
        for what, level, count in lacking
    ]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
