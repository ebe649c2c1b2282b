"""The option `--time` of `candlec zoo run` and `candlec zoo update`: times of plans and of onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from compiler.cli.output import table
from compiler.cli.progress import Models
from compiler.zoo.pace import STARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from compiler.zoo.facts import Facts, KnownFacts
    from compiler.zoo.index import Entry
    from compiler.zoo.pace import Pace, StartClass
    from compiler.zoo.task_runs import TaskSettings
    from compiler.zoo.time_folder import Timed

__all__ = ["check_time", "measured", "show_times", "time_option"]


def time_option(help_text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--time`, as the parameter `is_timed`."""
    return click.option("--time", "is_timed", is_flag=True, help=help_text)


def check_time(facts: Path | None, device: str, *, unpin: bool = False) -> None:
    """Refuse other options that do not fit `--time`."""
    if facts is None:
        raise click.UsageError("--time needs the file of facts, which holds the times: add --facts FILE")
    if device != "cpu":
        raise click.UsageError(f"--time compares times on the CPU with onnxruntime's: leave out --device {device}")
    if unpin:
        raise click.UsageError("--time times plans for the input shapes of a case: leave out --unpin")


def measured(
    checked: Mapping[Entry, Facts], settings: TaskSettings, known: KnownFacts | None = None
) -> dict[str, Timed]:
    """The times of the models that have a plan, with a report of progress. The facts are those of pinned shapes."""
    from compiler.zoo.time_folder import times

    with Models("time", settings.results) as progress:
        return times(checked, settings, progress, known)


def show_times(times: Mapping[str, Timed]) -> None:
    """Print a table of the times."""
    rows = [
        [name, each.level, f"{each.pace.percent} %", f"{each.pace.noise} %", *map(str, _starts(each.pace))]
        for name, each in times.items()
        if each.pace is not None
    ]
    if rows:
        table(("model", "level", ">of onnxruntime's time", ">noise", *(f">{name} ÷ session" for name in STARTS)), rows)


def _starts(pace: Pace) -> list[StartClass | str]:
    """The classes of the compilation and of the load; a dash for one that was not measured."""
    return [pace.starts.get(name, "–") for name in STARTS]
