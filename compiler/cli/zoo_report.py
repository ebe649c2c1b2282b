"""Prints the judgment of `candlec zoo run` on a folder of models, with advice."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from compiler.cli.output import errors
from compiler.cli.tables import zoo as zoo_tables
from compiler.cli.times import show_times
from compiler.cli.zoo_problems import given_options, show_problems

if TYPE_CHECKING:
    from compiler.zoo.folder_judgment import Judgment
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Outcome

__all__ = ["show_judgment"]

_SEARCHES = (
    ("different", (), "the pass and the step that make it wrong"),
    ("crashed", ("--what", "crash"), "the pass that makes it crash"),
)
"""Verdict → the options of `candlec bisect`, and what it finds."""


def show_judgment(judgment: Judgment, device: str) -> None:
    """Print the table, the times, and the problems of models with advice, but no drifts."""
    zoo_tables.show(judgment.found, device)
    show_times(judgment.times)
    show_problems(judgment.problems_without_drifts, judgment.endings)
    if device == "cpu":
        _show_search(judgment)
    if judgment.has_unrecorded:
        update = shlex.join(["candlec", "zoo", "update", *given_options("--zoo", "--device", "--baseline")])
        update += "" if given_options("--baseline") else " --baseline FILE"
        errors.print(f"  help: `{update}` records the results; `uncertain` in INDEX.json allows ≈", soft_wrap=True)


def _show_search(judgment: Judgment) -> None:
    """Print the commands that find the cause of the first different result and of the first crash."""
    wrong = [(each.case.entry, outcome) for each in judgment.found for outcome in each.outcomes if outcome.problem]
    for verdict, options, what in _SEARCHES:
        first = next((pair for pair in wrong if pair[1].verdict == verdict), None)
        if first is not None:
            search = shlex.join(["candlec", "bisect", *_searched(*first), *options])
            errors.print(f"  help: `{search}` finds {what}", soft_wrap=True)


def _searched(entry: Entry, outcome: Outcome) -> list[str]:
    """The model and the case of a remark, or the first case, as arguments of `candlec bisect`."""
    files = [case for case in entry.cases if case.suffix == ".npz"]
    names = {case: case.stem.removeprefix(f"{entry.name}.") for case in files}
    found = [case for case in files if any(each.startswith(f"{names[case]}: ") for each in outcome.remarks)]
    return [str(entry.path), *(["--input", str((found or files)[0])] if files else [])]
