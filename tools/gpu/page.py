"""The lines of a section on the page: tables and lists of results."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from gpu.report import Part
from gpu.results import Result, verdict

Column = str | Callable[[Result], Any]
"""The keys of a value in a result, separated by periods, or a function that computes the value from the result."""
Cells = Mapping[str, Column]
"""Head → column of a table."""


def bullets(part: Part) -> Iterator[str]:
    """A list of the results."""
    for result in part.results.values():
        mark, _, rest = verdict(result).partition(" ")
        colon = ": " if rest else ""
        yield f"- {mark} {result['name']}{colon}{rest}{unfinished(result)}"


def table(*parts: Cells, notes: Iterable[str] = ()) -> Callable[[Part], Iterator[str]]:
    """Tables with a line for every result. The first table has the verdicts. The notes follow the tables."""

    def lines(part: Part) -> Iterator[str]:
        for number, cells in enumerate(parts):
            heads = ["name", *(["result"] if number == 0 else []), *cells]
            yield f"| {' | '.join(heads)} |"
            yield f"|{' --- |' * len(heads)}"
            for result in part.results.values():
                first = [verdict(result).replace("|", "/") + unfinished(result)] if number == 0 else []
                shown = [cell(result, value) for value in cells.values()]
                yield f"| {' | '.join([result['name'], *first, *shown])} |"
            yield ""
        yield from notes

    return lines


def cell(result: Result, column: Column) -> str:
    """The text of a cell; empty if the result has no such value."""
    try:
        return shown(
            functools.reduce(lambda at, key: at[key], column.split("."), result)
            if isinstance(column, str)
            else column(result)
        )
    except (KeyError, TypeError, ZeroDivisionError):
        return ""


def shown(value: Any) -> str:
    """The text of a value: a number with four digits, a median with its spread."""
    if isinstance(value, dict):
        if "median" not in value:
            return ", ".join(f"{key} {shown(each)}" for key, each in value.items())
        spread = (value["high"] - value["low"]) / 2 / value["median"] if value["median"] else 0
        return f"{shown(value['median'])} ± {100 * spread:.0f} %"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
    return "" if value is None else str(value).replace("|", "/")


def unfinished(result: Result) -> str:
    """The mark of a partial result."""
    return " (not finished)" if result.get("partial") else ""


def summary(part: Part) -> Iterator[str]:
    """The number of good results, the other results, and the ops without a kernel."""
    found = list(part.results.values())
    wrong = [result for result in found if result["verdict"] not in ("equal", "near")]
    yield f"{len(found) - len(wrong)} of {len(part.planned)} tests of operators equal the CPU's results."
    yield ""
    yield from grouped(wrong)
    missing = Counter(op for result in found for op in result.get("missing", ()))
    named = ", ".join(f"{op} ({number})" for op, number in missing.most_common())
    yield ""
    yield f"Steps without a kernel, by op and the number of tests: {named or 'none'}."


def grouped(wrong: Iterable[Result]) -> Iterator[str]:
    """A list of results that are not good, with one line for all that have the same note."""
    groups: dict[str, list[str]] = {}
    for result in wrong:
        groups.setdefault(verdict(result), []).append(result["name"])
    for words, names in groups.items():
        mark, _, rest = words.partition(" ")
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"- {mark} {', '.join(names[:3])}{more}{': ' if rest else ''}{rest}"
