"""The tables of `candlec diff`: inputs and outputs, operators, nodes, constants, facts, and results."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from compiler.cli.output import console, megabytes, table
from compiler.cli.verify import COMPARISON_COLUMNS, comparison_cells, layer_data, output_data, show_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.cli.output import Cell
    from compiler.diff import Difference
    from compiler.diff.changes import ConstantChange, NodeChange
    from compiler.diff.numbers import Numbers

__all__ = ["numbers_data", "show", "summary"]

_NODES = {"model": "node", "plan": "step"}
"""The kind of a difference → what its graphs consist of."""
_MOST_ROWS, _LONGEST = 30, 60
"""The largest numbers of rows of a table, and of characters of an attribute."""


def show(before: str, after: str, found: Difference) -> None:
    """Print what differs, and in how many places."""
    _ends(found)
    _operators(found, _NODES[found.kind])
    _limited(("", "operator", _NODES[found.kind], "what", "before", "after", "origin"), list(_nodes(found.nodes)))
    _limited(("", "constant", "before", "after", ">max abs"), [_constant(each) for each in found.constants])
    if found.facts:
        from compiler.zoo.drift import text_of

        rows = ((name.replace("_", " "), text_of(old), text_of(new)) for name, old, new in found.facts)
        table(("fact", "before", "after"), rows)
    if found.numbers is not None:
        _numbers(found.numbers)
    said = summary(before, after, found)
    console.print(said, style="green" if found.is_equal else "yellow", soft_wrap=True)


def summary(before: str, after: str, found: Difference) -> str:
    """What differs between two models or plans, and in how many places, in a sentence without a period."""
    count, size = found.shared
    equal = f"{count} constant{'s' * (count != 1)} of {megabytes(size)}"
    if found.is_equal:
        return f"{before} and {after} are equal, also their {equal}"
    node = _NODES[found.kind]
    parts = [
        _counted(len(found.ends), "input or output", "inputs and outputs"),
        _counted(len(found.nodes), node, f"{node}s"),
        _counted(len(found.constants), "constant", "constants"),
        _counted(len(found.facts), "fact", "facts"),
    ]
    said = ", ".join(each for each in parts if each) or "only the results"
    return f"{before} and {after} differ: {said}; they share {equal}"


def numbers_data(numbers: Numbers | None) -> dict[str, Any] | None:
    """The comparison of two runs as JSON."""
    if numbers is None:
        return None
    return {
        "problem": numbers.problem,
        "outputs": [output_data(each) for each in numbers.outputs],
        "values": [layer_data(each) for each in numbers.values],
        "first": None if numbers.first is None else layer_data(numbers.first),
    }


def _ends(found: Difference) -> None:
    ends = [
        (each.which, *("" if end is None else f"{end[0]}: {end[1]}" for end in (each.before, each.after)), each.note)
        for each in found.ends
    ]
    _limited(("", "before", "after", ""), ends)


def _operators(found: Difference, name: str) -> None:
    """Print the operators of nodes that differ."""
    rows = [
        [each.op, *("" if count == 0 else str(count) for count in counts)]
        for each in found.operators
        if any((counts := (each.before, each.after, each.added, each.removed, each.changed))[2:])
    ]
    if rows:
        table((f"operator of {name}s", ">before", ">after", ">added", ">removed", ">changed"), rows)


def _nodes(nodes: Sequence[NodeChange]) -> Iterator[Sequence[str]]:
    """A row for each node, and for each further detail of it."""
    for each in nodes:
        first, *more = each.details or (("", None, None),)
        place = replace(each.origin, nodes=()) if each.origin.source or each.origin.module else each.origin
        yield each.change, each.op, each.name, *_detail(*first), str(place)
        yield from (("", "", "", *_detail(*detail), "") for detail in more)


def _detail(what: str, before: str | None, after: str | None) -> tuple[str, str, str]:
    return what, _short(before), _short(after)


def _short(text: str | None) -> str:
    """The beginning of a text; an empty text for `None`."""
    return text or "" if text is None or len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _constant(each: ConstantChange) -> Sequence[str]:
    described = (
        "" if kind is None or size is None else f"{kind}, {megabytes(size)}"
        for kind, size in zip(each.types, each.bytes, strict=True)
    )
    return each.change, each.name, *described, "" if each.max_abs is None else f"{each.max_abs:.1e}"


def _limited(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    """Print a table of the first rows, if there are any."""
    if rows:
        table(columns, islice(rows, _MOST_ROWS))
    if len(rows) > _MOST_ROWS:
        console.print(f"… and {len(rows) - _MOST_ROWS} more rows; --json lists all\n", soft_wrap=True)


def _numbers(numbers: Numbers) -> None:
    """Print the comparison of two runs."""
    if numbers.problem:
        console.print(f"{numbers.problem}\n", style="red", soft_wrap=True)
        return
    table(COMPARISON_COLUMNS, (comparison_cells(each) for each in numbers.outputs))
    for each in numbers.outputs:
        if said := each.problem or each.note:
            console.print(f"{each.name}: {said}", soft_wrap=True)
    if numbers.first is not None:
        show_step(numbers.first)
        console.print()


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}" if count else ""
