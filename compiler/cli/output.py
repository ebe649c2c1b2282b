"""Tables, JSON and other text."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from compiler.atomic_files import write_whole
from compiler.cli.streams import echo, encodable, naming

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = [
    "NEAR",
    "RIGHT",
    "UNKNOWN",
    "WRONG",
    "Cell",
    "console",
    "errors",
    "json_option",
    "markdown",
    "megabytes",
    "print_json",
    "shape_text",
    "table",
    "working",
    "write_text",
]

WIDE = 160
"""The width of a table in a file or a pipe, in columns."""


class Output(Console):
    """A console for results and messages: plain text, with colors on a terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, and let an error of writing name the stream."""
        with naming("standard error" if self.stderr else "standard output"):
            super().print(*objects, **options)

    def on_broken_pipe(self) -> None:
        """Let the command line handle the error, because it chooses the exit code."""
        raise BrokenPipeError


console = Output(width=WIDE if sys.stdout is None or not sys.stdout.isatty() else None)
errors = Output(stderr=True)

Cell = str | Text
RIGHT, WRONG = Text("✓", "green"), Text("✗", "red")
UNKNOWN = Text("?", "yellow")
NEAR = Text("≈", "yellow")
"""The mark of an uncertain result, see `compiler.accuracy.compare` on reference noise."""


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--json`, as the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")(function)


def print_json(data: Any) -> None:
    """Print data as JSON. NaN and infinity, which JSON lacks, become null."""
    echo(json.dumps(_finite(data), indent=2, ensure_ascii=False, allow_nan=False))


def write_text(path: Path, text: str) -> None:
    """Write a text to a file.

    Raises:
        OSError: the file cannot be written, and keeps its former content.
    """
    write_whole(path, encodable(text).encode())


def _finite(data: Any) -> Any:
    match data:
        case dict():
            return {key: _finite(value) for key, value in data.items()}
        case list() | tuple():
            return [_finite(value) for value in data]
        case float() if not math.isfinite(data):
            return None
    return data


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], title: str = "") -> None:
    """Print a table. A column whose name begins with `>` is aligned right."""
    made = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        made.add_column(column.lstrip(">"), justify="right" if column.startswith(">") else "left")
    for row in rows:
        made.add_row(*row)
    if console.is_terminal:
        console.print(made)
    else:
        console.print("\n".join(line.rstrip() for line in _lines(made)), soft_wrap=True)
    console.print()


def markdown(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The table as Markdown."""

    def line(cells: Iterable[Cell]) -> str:
        return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"

    rule = "".join("|---:" if column.startswith(">") else "|---" for column in columns)
    return "\n".join([line(column.lstrip(">") for column in columns), f"{rule}|", *map(line, rows)])


def _lines(made: Table) -> list[str]:
    with naming("standard output"), console.capture() as captured:  # the end of the capture flushes the stream
        console.print(made)
    return captured.get().splitlines()


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a progress message on a terminal."""
    with errors.status(what) if errors.is_terminal else _nothing():
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def shape_text(shape: Sequence[int | str | None] | None) -> str:
    """The text of a shape, such as `[1, batch, ?]`."""
    return "[…]" if shape is None else f"[{', '.join('?' if dim is None else str(dim) for dim in shape)}]"


def megabytes(size: int) -> str:
    """A size in B, kB, MB or GB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"
