"""Compares the facts of models with a file of facts, and prints the drifts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

from compiler.cli.ended import given_options
from compiler.cli.output import errors

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from compiler.zoo.drift import Drift, FactsByModel
    from compiler.zoo.facts import KnownFacts
    from compiler.zoo.index import Entry
    from compiler.zoo.suite import CaseOutcome
    from compiler.zoo.timed import Timed

__all__ = ["Compared", "compared", "show_drifts"]

_MOST_NAMES = 3
"""The advice names at most this many models. If there are more, it applies to all models of the folder."""


@dataclass(frozen=True)
class Compared:
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


def compared(
    found: Sequence[CaseOutcome],
    times: Mapping[str, Timed] | None,
    known: KnownFacts,
    path: Path,
    only: Sequence[str],
) -> Compared:
    """Compare the facts of models, and their times if there are any, with those of a file."""
    from compiler.zoo.drift import drifts, time_drifts
    from compiler.zoo.timed import with_times

    facts: FactsByModel = {
        each.case.entry.name: {} if each.facts is None else {each.case.shapes: each.facts} for each in found
    }
    facts = with_times(facts, times or {})
    made, of_times = drifts(known, facts, only), time_drifts(known, facts)
    by_model: dict[str, list[str]] = {}
    for each in made:
        by_model.setdefault(each.model, []).append(each.problem)
    faster = [each for each in of_times if each.before is not None and not each.is_slower]
    new = [each for each in of_times if each.before is None]
    return Compared(made, _missing(known, facts, new, path), faster, by_model, times is not None)


def _missing(known: KnownFacts, facts: FactsByModel, new: Sequence[Drift], path: Path) -> list[str]:
    """The sentences about facts and times that the file lacks at the level of this processor. `new` holds the times."""
    from compiler.zoo.drift import levels_missing

    lacking = [("facts", level, len(models)) for level, models in levels_missing(known, facts).items()]
    by_level: dict[str, list[Drift]] = {}
    for each in new:
        by_level.setdefault(each.fact.partition(".")[0], []).append(each)
    lacking += [("time", level, len(times)) for level, times in by_level.items()]
    return [
        f"{path} has no {what} of {_counted(count, 'model')} at the level {level} of this processor"
        for what, level, count in lacking
    ]


def show_drifts(made: Compared, folder: Path, path: Path, device: str, entries: Mapping[str, Entry]) -> None:
    """Print a line for each drift, the notes, and the commands that find the causes or accept the changes.

    `entries` are the models that were checked, by name.
    """
    command = ["candlec", "zoo", "update", "--zoo", str(folder), "--facts", str(path)]
    command += [] if device == "cpu" else ["--device", device]
    for model, lines in made.by_model.items():
        for line in lines:
            errors.print(Text.assemble(("error:", "bold red"), f" {model}, {line}"), soft_wrap=True)
    with_time = ["--time"] if made.is_timed else []
    for note in made.missing:
        errors.print(f"note: {note}: `{shlex.join([*command, *with_time])}` adds them", soft_wrap=True)
    for each in made.faster:
        errors.print(f"note: {each.model}, {each}", soft_wrap=True)
    if device == "cpu":
        _show_searches(made.drifts, path, entries)
    if made.drifts:
        with_time = ["--time"] if any(each.is_slower for each in made.drifts) else []
        accepting = shlex.join([*command, *with_time, *_only(made.drifts)])
        errors.print(f"  help: if these changes are right, record them: `{accepting}`", soft_wrap=True)
    if made.faster:
        accepting = shlex.join([*command, "--time", *_only(made.faster)])
        errors.print(f"  help: `{accepting}` records the shorter times", soft_wrap=True)


def _show_searches(drifts: Sequence[Drift], path: Path, entries: Mapping[str, Entry]) -> None:
    """Print the commands that find the passes and steps that have changed."""
    from compiler.zoo.searches import searches

    for what, drift in searches(drifts).items():
        entry = entries.get(drift.model)
        if entry is None:
            continue
        search = ["candlec", "bisect", str(entry.path), "--what", what, "--facts", str(path)]
        search += ["--unpin"] if drift.shapes == "unpinned" else []
        search += [] if entry.download is None else ["--zoo", str(entry.folder)]
        search += given_options("--lower-3d", "--strict")
        errors.print(f"  help: `{shlex.join(search)}` finds the pass and the step", soft_wrap=True)


def _only(drifts: Sequence[Drift]) -> list[str]:
    """The options that select the models of these drifts; none for many models, or if a model is gone."""
    names = list(dict.fromkeys(each.model for each in drifts))
    is_partial = len(names) <= _MOST_NAMES and not any(each.is_gone for each in drifts)
    return [part for name in names if is_partial for part in ("--only", name)]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
