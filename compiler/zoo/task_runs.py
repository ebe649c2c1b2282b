"""Runs a task for each of several models, in a process each, and keeps their results in a file."""

from __future__ import annotations

import importlib.util
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from compiler.errors import DeviceError
from compiler.processes.memory import is_measured
from compiler.processes.run import Limits, run_tasks, usable_processors
from compiler.zoo.compile_options import Compiling
from compiler.zoo.results import Results
from compiler.zoo.task_arguments import Asked
from compiler.zoo.tasks import MODULES

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from compiler.processes.child import Task
    from compiler.processes.ending import Ending

__all__ = ["TaskProgress", "TaskSettings", "endings_of"]

A = TypeVar("A", bound=Asked)


@dataclass(frozen=True)
class TaskSettings:
    """How to run the tasks.

    `jobs` is the number of processes at a time, by default the number of usable processors, but one on a GPU. `limits`
    are those of each task. `results` is the file for the results. With `resume`, a task whose result is in this file
    does not run again, unless its files, its options or a version has changed. With `fresh`, each process begins with a
    new interpreter, and has memory addresses of its own. `compiling` has the options of the compilation.
    """

    jobs: int | None = None
    limits: Limits = field(default_factory=Limits)
    results: Path | None = None
    resume: bool = False
    fresh: bool = False
    compiling: Compiling = field(default_factory=Compiling)

    def jobs_for(self, count: int, device: str = "cpu") -> int:
        """The number of processes at a time for so many models."""
        usual = usable_processors() if device in ("cpu", "emulator") else 1
        return max(min(self.jobs or usual, count), 1)

    def threads_for(self, count: int, device: str = "cpu") -> int | None:
        """The number of threads of a process: one beside others; alone, the default of sessions."""
        return 1 if self.jobs_for(count, device) > 1 else None


class TaskProgress(Protocol):
    """A reader of the progress of tasks. A task has the name of its model."""

    def begin(self, names: Sequence[str], known: int) -> None:
        """These tasks will run. The results of `known` others are in the file of results."""

    def phase(self, name: str, phase: str) -> None:
        """A task has started, or has reached another phase."""

    def end(self, name: str, said: str, seconds: float) -> None:
        """A task has ended. `said` is its result in words."""


class Silent:
    """No report of progress."""

    def begin(self, names: Sequence[str], known: int) -> None:
        """Do nothing."""

    def phase(self, name: str, phase: str) -> None:
        """Do nothing."""

    def end(self, name: str, said: str, seconds: float) -> None:
        """Do nothing."""


def endings_of(
    task: Task[A],
    asked: Sequence[A],
    settings: TaskSettings,
    judge: Callable[[A, Ending], tuple[bool, str]],
    progress: TaskProgress | None = None,
    device: str = "cpu",
    *,
    is_reference_needed: bool = True,
) -> list[Ending]:
    """The endings of a task for each model, in the same order.

    `judge` returns whether an ending is acceptable, and its result in words.

    Raises:
        DeviceError: the device cannot be used.
        OSError: the file of results cannot be read or written.
        ReferenceMissing: onnxruntime is not installed, and the task needs it.
        ValueError: the file of results is another kind of file, or a limit cannot be measured.
    """
    _check_requirements(settings, is_reference_needed)
    shown = Silent() if progress is None else progress
    results = None if settings.results is None else Results(settings.results)
    endings: dict[int, Ending] = {}
    if results is not None and settings.resume:
        known = ((index, results.ending(each, settings.limits)) for index, each in enumerate(asked))
        endings = {index: ending for index, ending in known if ending is not None}
    left = [index for index in range(len(asked)) if index not in endings]
    if results is not None:
        results.begin(asked[index] for index in left)
    shown.begin([asked[index].entry.name for index in left], len(endings))
    with closing(_run(task, [asked[index] for index in left], settings, shown, device)) as found:
        for place, ending in found:
            each = asked[left[place]]
            is_acceptable, said = judge(each, ending)
            if results is not None:
                results.add(each, settings.limits, ending, is_acceptable, said)
            shown.end(each.entry.name, said, ending.seconds)
            endings[left[place]] = ending
    return [endings[index] for index in range(len(asked))]


def _run(
    task: Task[A], asked: Sequence[A], settings: TaskSettings, shown: TaskProgress, device: str
) -> Generator[tuple[int, Ending], None, None]:
    """The endings of tasks as they end.

    Raises:
        DeviceError: the device cannot be used, which no other model would change.
    """

    def tell(index: int, phase: str) -> None:
        shown.phase(asked[index].entry.name, phase)

    jobs, limits, fresh = settings.jobs_for(len(asked), device), settings.limits, settings.fresh
    endings = run_tasks(task, asked, jobs=jobs, limits=limits, on_phase=tell, modules=MODULES, fresh=fresh)
    with closing(endings):
        for index, ending in endings:
            if ending.error == DeviceError.__name__:
                raise DeviceError(ending.message)
            yield index, ending


def _check_requirements(settings: TaskSettings, is_reference_needed: bool) -> None:
    """Refuse settings that would fail for every model."""
    if is_reference_needed and importlib.util.find_spec("onnxruntime") is None:
        from compiler.accuracy.reference import missing

        raise missing()
    if settings.limits.memory is not None and not is_measured():
        raise ValueError("only Linux reports the memory of a process: leave out the limit of memory")
