"""Prints the judgment of `candlec zoo run` on a folder of models, with advice."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from compiler.cli.output import errors
from compiler.cli.tables import zoo as zoo_tables
from compiler.cli.times import show_times
from compiler.cli.zoo_problems import CHECKING, COMPILING, given_options, is_rounded, show_problems

if TYPE_CHECKING:
    from compiler.zoo.folder_judgment import Judgment
    from compiler.zoo.outcome import Outcome
    from compiler.zoo.suite import Case

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
    if is_rounded():
        _show_precision(judgment)
    elif device == "cpu":
        _show_search(judgment)
    if judgment.has_unrecorded:
        kept = given_options("--zoo", "--device", "--baseline", *CHECKING, *COMPILING)
        update = shlex.join(["candlec", "zoo", "update", *kept])
        update += "" if given_options("--baseline") else " --baseline FILE"
        errors.print(f"  help: `{update}` records the results; `uncertain` in INDEX.json allows ≈", soft_wrap=True)


def _show_precision(judgment: Judgment) -> None:
    """Say that rounded products differ by design, if a result is different."""
    if any(each.problem and each.verdict == "different" for each in judgment.outcomes):
        advice = "set --tolerance to the difference that you allow, such as 0.05, or `tolerance` in INDEX.json"
        errors.print(f"  help: --precision rounds numbers, so results differ by design: {advice}", soft_wrap=True)


def _show_search(judgment: Judgment) -> None:
    """Print the commands that find the cause of the first different result and of the first crash."""
    wrong = [(each.case, outcome) for each in judgment.found for outcome in each.outcomes if outcome.problem]
    for verdict, options, what in _SEARCHES:
        first = next((pair for pair in wrong if pair[1].verdict == verdict), None)
        if first is not None:
            search = shlex.join(["candlec", "bisect", *_searched(*first), *options, *given_options(*COMPILING)])
            errors.print(f"  help: `{search}` finds {what}", soft_wrap=True)


def _searched(case: Case, outcome: Outcome) -> list[str]:
    """The model, its inputs and their sizes as arguments of `candlec bisect`.

    The inputs are those of a remark, or those of the first case. The sizes are for plans with pinned shapes.
    """
    from compiler.zoo.shapes import sizes_in

    entry = case.entry
    names = {each: each.stem.removeprefix(f"{entry.name}.") for each in entry.cases}
    found = [each for each in entry.cases if any(one.startswith(f"{names[each]}: ") for one in outcome.remarks)]
    inputs = (found or entry.cases)[0]
    dims = sizes_in(entry.path, entry.inputs(inputs)) if case.shapes == "pinned" else {}
    fixed = [part for name, size in dims.items() for part in ("--dim", f"{name}={size}")]
    return [str(entry.path), "--input", str(inputs), *fixed]
