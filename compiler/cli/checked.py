"""The results of `candlec zoo run`: the command finds their problems, and writes and prints them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.cli import github
from compiler.cli.ended import given_options, show_problems
from compiler.cli.output import errors
from compiler.cli.tables import zoo as zoo_tables
from compiler.cli.times import show_times, time_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.cli.drifts import Compared
    from compiler.processes.ending import Ending
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Outcome
    from compiler.zoo.suite import CaseOutcome
    from compiler.zoo.timed import Timed

__all__ = ["Checked"]


@dataclass(frozen=True)
class Checked:
    """The outcomes of models, the models with a stale line of the baseline, the times, the profiles and the drifts."""

    found: Sequence[CaseOutcome]
    stale: Mapping[str, str]
    times: Mapping[str, Timed]
    profiles: Mapping[str, Ending]
    drift: Compared

    @property
    def problems(self) -> dict[str, list[str]]:
        """The problems of each model: in its outcomes, its baseline entry, its measurements and its facts."""
        return _joined(self._own_problems, self.drift.by_model)

    @property
    def is_right(self) -> bool:
        """Whether all results are acceptable."""
        return not self.problems and all(each.ok for each in self.found)

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
            "outcomes": [each.data for each in self._outcomes],
            "stale": [{"model": model, "problem": problem} for model, problem in self.stale.items()],
            "drifts": [each.data for each in self.drift.drifts],
            "notes": self.drift.notes,
            "times": {name: each.data for name, each in self.times.items()},
        }

    def junit(self) -> bytes:
        """The results as JUnit XML."""
        from compiler.zoo.junit import junit

        return junit(self._outcomes, self.stale, _joined(self._not_measured, self.drift.by_model))

    def page(self, title: str) -> str:
        """The results as Markdown."""
        return github.summary(title, self.found, self.problems, self.drift.notes)

    def show(self, device: str) -> None:
        """Print the table, the times, and the problems of models with advice, but no drifts."""
        zoo_tables.show(self.found, device)
        show_times(self.times)
        show_problems(self._own_problems, self.endings)
        if device == "cpu":
            self._show_search()
        is_unknown = any(each.problem and each.verdict in ("uncertain", "refused") for each in self._outcomes)
        if is_unknown or self.stale:
            update = shlex.join(["candlec", "zoo", "update", *given_options("--zoo", "--device", "--baseline")])
            update += "" if given_options("--baseline") else " --baseline FILE"
            errors.print(f"  help: `{update}` records the results; `uncertain` in INDEX.json allows ≈", soft_wrap=True)

    def _show_search(self) -> None:
        """Print the commands that find the cause of the first different result and of the first crash."""
        wrong = [(each, outcome) for each in self.found for outcome in each.outcomes if outcome.problem]
        for verdict, options, what in _SEARCHES:
            first = next((pair for pair in wrong if pair[1].verdict == verdict), None)
            if first is not None:
                search = shlex.join(["candlec", "bisect", *_searched(first[0].case.entry, first[1]), *options])
                errors.print(f"  help: `{search}` finds {what}", soft_wrap=True)

    @property
    def _outcomes(self) -> list[Outcome]:
        return [outcome for each in self.found for outcome in each.outcomes]

    @property
    def _own_problems(self) -> dict[str, list[str]]:
        """The problems of each model, without drifts."""
        problems = {
            each.case.entry.name: [outcome.problem for outcome in each.outcomes if outcome.problem]
            for each in self.found
        }
        return _joined(problems, {name: [problem] for name, problem in self.stale.items()}, self._not_measured)

    @property
    def _not_measured(self) -> dict[str, list[str]]:
        """The problems of models that could not be timed or profiled."""
        from compiler.zoo.profiled import problem_of

        profiles = {name: [problem] for name, each in self.profiles.items() if (problem := problem_of(each))}
        return _joined({name: [problem] for name, problem in time_problems(self.times).items()}, profiles)


_SEARCHES = (
    ("different", (), "the pass and the step that make it wrong"),
    ("crashed", ("--what", "crash"), "the pass that makes it crash"),
)
"""Verdict → the options of `candlec bisect`, and what it finds."""


def _searched(entry: Entry, outcome: Outcome) -> list[str]:
    """The model and the case of a remark, or the first case, as arguments of `candlec bisect`."""
    files = [case for case in entry.cases if case.suffix == ".npz"]
    names = {case: case.stem.removeprefix(f"{entry.name}.") for case in files}
    found = [case for case in files if any(each.startswith(f"{names[case]}: ") for each in outcome.remarks)]
    return [str(entry.path), *(["--input", str((found or files)[0])] if files else [])]


def _joined(*problems: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The problems by model, for each model that has any."""
    names = dict.fromkeys(name for each in problems for name in each)
    joined = {name: [line for each in problems for line in each.get(name, [])] for name in names}
    return {name: lines for name, lines in joined.items() if lines}
