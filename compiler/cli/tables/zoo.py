"""The table of `candlec zoo run`, and the lines below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from compiler.cli.output import Cell, console, table
from compiler.cli.verify import MARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.accuracy.compare import Verdict
    from compiler.zoo.suite import CaseOutcome

__all__ = ["show"]

STYLES: dict[Verdict, str] = {
    "equal": "",
    "random": "",
    "uncertain": "yellow",
    "different": "red",
    "refused": "red",
    "failed": "red",
    "timed out": "red",
    "out of memory": "red",
    "crashed": "red",
}


def show(found: Sequence[CaseOutcome], device: str) -> None:
    """Print the table, the remarks on results, the notes on onnxruntime, and the reasons for differences."""
    _show_table(found, device)
    outcomes = [outcome for each in found for outcome in each.outcomes]
    for line in dict.fromkeys(f"{each.model}: {each.note}" for each in outcomes if each.note):
        console.print(line, soft_wrap=True)
    for each in found:
        entry, known = each.case.entry, each.case.known
        if entry.reason:
            console.print(f"{entry.name}: tolerance {entry.tolerance:g}: {entry.reason}", soft_wrap=True)
        for reason in (entry.uncertain, known.reason if known else ""):
            if reason:
                console.print(f"{entry.name}: {reason}", soft_wrap=True)


def _show_table(found: Sequence[CaseOutcome], device: str) -> None:
    """Print one row for each model (marks of all variants, difference, time), then the remarks on results."""
    from compiler.accuracy.compare import counted
    from compiler.zoo.outcome import variants

    table(("model", ">cases", *map(str, variants(device)), ">of tolerance", ">time"), map(_row, found))
    outcomes = [outcome for each in found for outcome in each.outcomes]
    for shown, style in STYLES.items():
        alike = [each for each in outcomes if each.verdict == shown]
        lines = {f"{each.model}, {remark}": each.advice.get(remark) for each in alike for remark in each.remarks}
        for line, advice in lines.items():
            console.print(Text.assemble(MARKS[shown], " ", (line, style)), soft_wrap=True)
            if advice:
                console.print(f"  help: {advice}", soft_wrap=True)
    console.print(f"in all runs: {counted([each.worst.verdict for each in found], 'model')}", soft_wrap=True)


def _row(each: CaseOutcome) -> list[Cell]:
    marks, seconds = (
        [MARKS[outcome.verdict] for outcome in each.outcomes],
        sum(outcome.seconds for outcome in each.outcomes),
    )
    cases = str(len(each.case.entry.cases))
    return [each.case.entry.name, cases, *marks, _times(each.worst.share), f"{seconds:.1f} s"]


def _times(share: float) -> str:
    """A difference as a fraction or a multiple of the tolerance."""
    return f"{share:.0%}" if share <= 1 else f"{share:.1f} ×" if share < float("inf") else ""
