"""Compares the facts of models with a file of facts, and prints the drifts."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.text import Text

from compiler.cli.output import errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compiler.zoo.drift import Drift
    from compiler.zoo.facts import KnownFacts
    from compiler.zoo.suite import CaseOutcome

__all__ = ["Compared", "compared", "show_drifts"]

_MOST_NAMES = 3
"""The advice names at most as many models, and otherwise all models of the folder."""


@dataclass(frozen=True)
class Compared:
    """The drifts of models, and notes on facts that could not be compared."""

    drifts: Sequence[Drift] = ()
    notes: Sequence[str] = ()
    by_model: dict[str, list[str]] = field(default_factory=dict)


def compared(found: Sequence[CaseOutcome], known: KnownFacts, path: Path, only: Sequence[str]) -> Compared:
    """Compare the facts of models with those of a file."""
    from compiler.zoo.drift import drifts, levels_missing

    facts = {each.case.entry.name: {} if each.facts is None else {each.case.shapes: each.facts} for each in found}
    made = drifts(known, facts, only)
    by_model: dict[str, list[str]] = {}
    for each in made:
        by_model.setdefault(each.model, []).append(each.problem)
    notes = [
        f"{path} has no facts of {_counted(len(models), 'model')} at the level {level} of this processor"
        for level, models in levels_missing(known, facts).items()
    ]
    return Compared(made, notes, by_model)


def show_drifts(made: Compared, folder: Path, path: Path, device: str) -> None:
    """Print a line for each drift, the notes, and the command that accepts the drifts."""
    for model, lines in made.by_model.items():
        for line in lines:
            errors.print(Text.assemble(("error:", "bold red"), f" {model}, {line}"), soft_wrap=True)
    for note in made.notes:
        command = _update_command(folder, path, device, ())
        errors.print(f"note: {note}: `{command}` adds them", soft_wrap=True)
    if made.drifts:
        errors.print(
            f"  help: if these changes are right, record them: `{_update_command(folder, path, device, made.drifts)}`",
            soft_wrap=True,
        )


def _update_command(folder: Path, path: Path, device: str, drifts: Sequence[Drift]) -> str:
    """The command that writes the facts of these models to the file."""
    names = list(dict.fromkeys(each.model for each in drifts))
    is_partial = len(names) <= _MOST_NAMES and not any(each.is_gone for each in drifts)
    only = [part for name in names if is_partial for part in ("--only", name)]
    where = [] if device == "cpu" else ["--device", device]
    return shlex.join(["candlec", "zoo", "update", "--zoo", str(folder), "--facts", str(path), *where, *only])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"
