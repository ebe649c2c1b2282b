"""The tables of `candlec bench`, for a terminal and as Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.text import Text

from compiler.bench.engines import OTHERS, PLAN
from compiler.bench.timing import BEST, Timing, cold_means, means
from compiler.cli.output import Cell, console, markdown, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiler.bench.cold import Cold

__all__ = ["page", "show"]

Table = tuple[list[str], list[list[Cell]]]
"""The columns and rows of `compiler.cli.output.table`."""

COLD = {"load": "load", "first": "first run", "peak": "peak memory"}
ABSENT = "–"
NAMES = {BEST: "the best of the other runtimes"}


def show(timings: Sequence[Timing]) -> None:
    """Print the tables, the means and the failures."""
    for columns, rows in _tables(timings):
        table(columns, rows)
    for line in [*_summary(timings), *_failures(timings)]:
        console.print(line, style="bold" if line.startswith("geometric") else "", soft_wrap=True)


def page(timings: Sequence[Timing], command: str, machine: str, problems: Mapping[str, str]) -> str:
    """The tables, the means and the failures as a Markdown page. `problems` are those of models without all times."""
    refusals = [f"✗ {name}: {problem.splitlines()[0]}" for name, problem in problems.items()]
    lines = [*_summary(timings), *_failures(timings), *refusals]
    parts = [
        "# Times beside other runtimes",
        f"`{command}`",
        f"{machine}. {LEGEND}",
        *(markdown(*each) for each in _tables(timings)),
        "\n".join(f"- {line}" for line in lines),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


LEGEND = (
    "All runtimes take turns in one process. Times are the median ± half the distance of the quartiles. A ratio is the "
    "plan's time ÷ the other's; ÷ best is the plan's time ÷ that of the fastest other runtime. ≠ marks a ratio that "
    "differs by more than a tenth between processes."
)


def _tables(timings: Sequence[Timing]) -> list[Table]:
    """The table of times, and the tables of cold starts if there are any."""
    if not timings:
        return []
    others = [name for name in OTHERS if any(name in (*each.engines, *each.failed) for each in timings)]
    columns = ["model", ">threads", f">{PLAN}", *(column for name in others for column in (f">{name}", ">ratio"))]
    if len(others) > 1:
        columns.append(">÷ best")
    tables: list[Table] = [(columns, [_row(timing, others) for timing in timings])]
    cold = [timing for timing in timings if timing.cold]
    for what, title in COLD.items() if cold else ():
        columns = [title, *(f">{name}" for name in (PLAN, *others)), *(f">÷ {name}" for name in others)]
        tables.append((columns, [_cold_row(timing, what, others) for timing in cold]))
    return tables


def _row(timing: Timing, others: Sequence[str]) -> list[Cell]:
    cells: list[Cell] = [timing.model, str(timing.threads), _time(timing, PLAN)]
    for engine in others:
        known = engine in timing.engines
        cells += [_time(timing, engine), _ratio(timing, engine)] if known else [ABSENT, ABSENT]
    if len(others) > 1:
        cells.append(_ratio(timing, BEST) if BEST in timing.compared else ABSENT)
    return cells


def _time(timing: Timing, engine: str) -> str:
    return f"{timing.milliseconds(engine):.3f} ms ± {timing.spread(engine):.0%}"


def _ratio(timing: Timing, engine: str) -> Text:
    ratio = timing.ratio(engine)
    mark = "" if timing.is_settled else "≠ "
    return Text(f"{mark}{ratio:.2f}", "green" if ratio <= 1 else "")


def _cold_row(timing: Timing, what: str, others: Iterable[str]) -> list[Cell]:
    unit = "MB" if what == "peak" else "ms"
    values = [_value(timing.cold.get(engine), what) for engine in (PLAN, *others)]
    shown = [ABSENT if math.isnan(value) else f"{value:.2f} {unit}" for value in values]
    ours, *theirs = values
    ratios = [ABSENT if math.isnan(ours / value) else f"{ours / value:.2f}" for value in theirs]
    return [timing.model, *shown, *ratios]


def _value(cold: Cold | None, what: str) -> float:
    return math.nan if cold is None else getattr(cold, what)


def _summary(timings: Sequence[Timing]) -> list[str]:
    """The geometric means, each with its worst ratio."""
    lines = []
    for engine, by_threads in means(timings).items():
        for threads, mean in by_threads.items():
            alike = [each for each in timings if each.threads == threads and engine in each.compared]
            worst = max(alike, key=lambda each: each.ratio(engine))
            lines.append(
                f"geometric mean of time ÷ {NAMES.get(engine, engine)}, {_count(threads, 'thread')}, "
                f"{_count(len(alike), 'model')}: {mean:.2f}; worst: {worst.ratio(engine):.2f} ({worst.model})"
            )
    for what, title in COLD.items():
        for engine, by_threads in cold_means(timings, what).items():
            lines += [f"geometric mean of {title} ÷ {engine}: {mean:.2f}" for mean in by_threads.values()]
    return lines


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _failures(timings: Iterable[Timing]) -> list[str]:
    found = {(timing.model, why): None for timing in timings for why in timing.failed.values()}
    return [f"{ABSENT} {model}: {why}" for model, why in found]
