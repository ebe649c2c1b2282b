"""The judgment on the checks of a folder of models: their problems, and whether all results are acceptable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.zoo.profile_folder import problem_of
from compiler.zoo.time_folder import time_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.processes.ending import Ending
    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.compared_facts import ComparedFacts
    from compiler.zoo.outcome import Outcome
    from compiler.zoo.suite import CaseOutcome
    from compiler.zoo.time_folder import Timed

__all__ = ["Judgment", "stale_lines"]


@dataclass(frozen=True)
class Judgment:
    """The outcomes of models, the models with a stale line of the baseline, the times, the profiles and the drifts."""

    found: Sequence[CaseOutcome]
    stale: Mapping[str, str]
    times: Mapping[str, Timed]
    profiles: Mapping[str, Ending]
    drift: ComparedFacts

    @property
    def is_right(self) -> bool:
        """Whether all results are acceptable."""
        return not self.problems and all(each.ok for each in self.found)

    @property
    def problems(self) -> dict[str, list[str]]:
        """The problems of each model: in its outcomes, its baseline entry, its measurements and its facts."""
        return _joined(self.problems_without_drifts, self.drift.by_model)

    @property
    def problems_without_drifts(self) -> dict[str, list[str]]:
        """The problems of each model, but not its drifts."""
        problems = {
            each.case.entry.name: [outcome.problem for outcome in each.outcomes if outcome.problem]
            for each in self.found
        }
        return _joined(problems, {name: [problem] for name, problem in self.stale.items()}, self._not_measured)

    @property
    def problems_of_no_outcome(self) -> dict[str, list[str]]:
        """The problems of each model in its measurements and its facts."""
        return _joined(self._not_measured, self.drift.by_model)

    @property
    def has_unrecorded(self) -> bool:
        """Whether the baseline lacks a difference that it may record, or has a stale line."""
        verdicts = {each.verdict for each in self.outcomes if each.problem}
        return bool(self.stale) or not verdicts.isdisjoint({"uncertain", "refused"})

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of all variants of all models."""
        return [outcome for each in self.found for outcome in each.outcomes]

    @property
    def endings(self) -> dict[str, Ending]:
        """How the process of each model ended. If a model could not be measured, the end of its measurement counts."""
        failed = {name: each for name, each in self.profiles.items() if each.kind != "done"}
        failed |= {name: self.times[name].ending for name in time_problems(self.times)}
        return {each.case.entry.name: each.ending for each in self.found} | failed

    @property
    def data(self) -> dict[str, Any]:
        """The results as JSON."""
        return {
            "ok": self.is_right,
            "outcomes": [each.data for each in self.outcomes],
            "stale": [{"model": model, "problem": problem} for model, problem in self.stale.items()],
            "drifts": [each.data for each in self.drift.drifts],
            "notes": self.drift.notes,
            "times": {name: each.data for name, each in self.times.items()},
        }

    @property
    def _not_measured(self) -> dict[str, list[str]]:
        """The problems of models that could not be timed or profiled."""
        profiles = {name: [problem] for name, each in self.profiles.items() if (problem := problem_of(each))}
        return _joined({name: [problem] for name, problem in time_problems(self.times).items()}, profiles)


def stale_lines(
    found: Sequence[CaseOutcome], known: Mapping[str, KnownDifference], only: Sequence[str]
) -> dict[str, str]:
    """The models with a line of the baseline that no longer holds, and the problem with the line.

    With `only`, which selects models, a line for a model that was not checked holds.
    """
    names = {each.case.entry.name: each.stale for each in found}
    missing = {name: "it is in the baseline, but not in the folder" for name in known if not only and name not in names}
    return {name: problem for name in known if (problem := {**names, **missing}.get(name))}


def _joined(*problems: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The problems by model, for each model that has any."""
    names = dict.fromkeys(name for each in problems for name in each)
    joined = {name: [line for each in problems for line in each.get(name, [])] for name in names}
    return {name: lines for name, lines in joined.items() if lines}
