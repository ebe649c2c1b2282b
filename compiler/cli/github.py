"""The results of a folder of models for GitHub's jobs: a summary in Markdown, and annotations."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from compiler.cli.output import Cell, errors, markdown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.zoo.suite import CaseOutcome

__all__ = ["annotate", "summary"]

_COLUMNS = ("", "model", ">cases", "result", ">of tolerance", ">time")


def annotate(problems: Mapping[str, Sequence[str]]) -> None:
    """In a job of GitHub Actions, print an annotation for each problem of a model. GitHub shows it beside the job."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        return
    for model, lines in problems.items():
        title = _escaped(model).replace(":", "%3A").replace(",", "%2C")
        for line in dict.fromkeys(lines):
            errors.print(f"::error title={title}::{_escaped(line)}", soft_wrap=True)


def summary(
    title: str, found: Sequence[CaseOutcome], problems: Mapping[str, Sequence[str]], notes: Sequence[str]
) -> str:
    """The results as Markdown: how many are equal, the problems of each model, notes, and a table of all models."""
    from compiler.accuracy.compare import counted

    parts = [f"# {title}", f"In all runs: {counted([each.worst.verdict for each in found], 'model')}."]
    pairs = ((model, line) for model, each in problems.items() for line in dict.fromkeys(each))
    lines = [f"- **{_plain(model)}**: {_plain(line)}" for model, line in pairs]
    parts += ["## Problems", "\n".join(lines)] if lines else []
    parts += ["\n".join(f"- {_plain(note)}" for note in notes)] if notes else []
    rows = [_row(each, each.case.entry.name in problems) for each in found]
    return "\n\n".join([*parts, "## Models", markdown(_COLUMNS, rows)]) + "\n"


def _row(each: CaseOutcome, is_wrong: bool) -> list[Cell]:
    share, seconds = each.worst.share, sum(outcome.seconds for outcome in each.outcomes)
    difference = f"{share:.3g}" if share < float("inf") else ""
    cases = str(len(each.case.entry.cases))
    return ["✗" if is_wrong else "✓", each.case.entry.name, cases, str(each.worst), difference, f"{seconds:.1f} s"]


def _plain(text: str) -> str:
    """The text on one line, with a backslash before each character that Markdown interprets."""
    return "".join(f"\\{each}" if each in "\\`*_<>[]#|" else each for each in " ".join(text.split()))


def _escaped(text: str) -> str:
    """A text for a command of GitHub, which ends with the line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
