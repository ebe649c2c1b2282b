"""The option `--profile` of `candlec zoo run`: the time and the memory of each step, for the page of the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from compiler.cli.progress import Models

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from compiler.processes.ending import Ending
    from compiler.zoo.suite import CaseOutcome
    from compiler.zoo.task_runs import TaskSettings

__all__ = ["check_profile", "profile_option", "profiled"]


def profile_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--profile`, as the parameter `is_profiled`."""
    text = "Also time each step of each plan, for `candlec zoo page`. The file of --results has the profiles."
    return click.option("--profile", "is_profiled", is_flag=True, help=text)(function)


def check_profile(settings: TaskSettings) -> None:
    """Refuse `--profile` without a file for the profiles."""
    if settings.results is None:
        raise click.UsageError("--profile writes the times of the steps to the file of results: add --results FILE")


def profiled(found: Iterable[CaseOutcome], settings: TaskSettings) -> dict[str, Ending]:
    """How the profile of each model that has a plan ended, with a report of progress."""
    from compiler.zoo.profile_folder import profiles

    cases = [each.case for each in found if each.facts is not None and each.facts.has_plan]
    if not cases:
        return {}
    with Models("profile", settings.results) as progress:
        return profiles((each.entry for each in cases), cases[0].shapes, cases[0].device, settings, progress)
