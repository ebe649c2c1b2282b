"""Prints the drifts of models, and the commands that find their causes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.text import Text

from compiler.cli.output import errors
from compiler.cli.zoo_problems import CHECKING, COMPILING, given_options, is_rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from compiler.zoo.compared_facts import ComparedFacts
    from compiler.zoo.drift import Drift
    from compiler.zoo.index import Entry

__all__ = ["show_drifts"]

_MOST_NAMES = 3
"""The advice names at most this many models. If there are more, it applies to all models of the folder."""


def show_drifts(made: ComparedFacts, folder: Path, path: Path, device: str, entries: Mapping[str, Entry]) -> None:
    """Print a line for each drift, the notes, and the commands that find the causes or accept the changes.

    `entries` are the models that were checked, by name.
    """
    command = ["candlec", "zoo", "update", "--zoo", str(folder), "--facts", str(path)]
    command += [] if device == "cpu" else ["--device", device]
    command += given_options(*CHECKING, *COMPILING)
    for model, lines in made.by_model.items():
        for line in lines:
            errors.print(Text.assemble(("error:", "bold red"), f" {model}, {line}"), soft_wrap=True)
    with_time = ["--time"] if made.is_timed else []
    for note in made.missing:
        errors.print(f"note: {note}: `{shlex.join([*command, *with_time])}` adds them", soft_wrap=True)
    for each in made.faster:
        errors.print(f"note: {each.model}, {each}", soft_wrap=True)
    if device == "cpu" and not is_rounded():
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
        search += given_options(*COMPILING)
        errors.print(f"  help: `{shlex.join(search)}` finds the pass and the step", soft_wrap=True)


def _only(drifts: Sequence[Drift]) -> list[str]:
    """The options that select the models of these drifts; none for many models, or if a model is gone."""
    names = list(dict.fromkeys(each.model for each in drifts))
    is_partial = len(names) <= _MOST_NAMES and not any(each.is_gone for each in drifts)
    return [part for name in names if is_partial for part in ("--only", name)]
