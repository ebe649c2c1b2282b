"""The profiles of the plans of a folder, one process at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compiler.zoo import tasks
from compiler.zoo.task_arguments import Profile
from compiler.zoo.task_runs import endings_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compiler.processes.ending import Ending
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Shapes
    from compiler.zoo.task_runs import TaskProgress, TaskSettings

__all__ = ["problem_of", "profiles"]


def profiles(
    entries: Iterable[Entry], shapes: Shapes, device: str, settings: TaskSettings, progress: TaskProgress | None = None
) -> dict[str, Ending]:
    """Profile models that have plans. Returns how each profile ended, by model.

    Raises: as `endings_of`.
    """
    asked = [Profile(entry, shapes, device, settings.compiling) for entry in entries]
    endings = endings_of(tasks.profile, asked, replace(settings, jobs=1), _judge, progress, device)
    return {one.entry.name: ending for one, ending in zip(asked, endings, strict=True)}


def problem_of(ending: Ending) -> str:
    """The reason why there is no profile; empty if there is one."""
    return "" if ending.kind == "done" else f"it cannot be profiled: {ending.sentence}"


def _judge(_: Profile, ending: Ending) -> tuple[bool, str]:
    return ending.kind == "done", "failed" if problem_of(ending) else "profiled"
