"""The progress of models that are checked, and of rows that are computed: a bar on a terminal, otherwise lines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from compiler.cli.output import errors, megabytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

    from rich.progress import Progress, TaskID
    from typing_extensions import Self

__all__ = ["Downloads", "Models", "Rows", "duration"]


class _Shown:
    """Shows a bar on a terminal, while the work goes on."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if errors.is_terminal:
            self._bar = _bar()
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()


class Models(_Shown):
    """The progress of tasks, which have the names of their models (`compiler.zoo.task_runs.TaskProgress`).

    Several batches of tasks may follow each other. `what` follows a model's name in a line. `results` is the file that
    keeps the results if Ctrl-C ends the command.
    """

    def __init__(self, what: str = "", results: Path | None = None) -> None:
        super().__init__()
        self._what, self._results = what, results
        self._total = self._known = self._done = 0
        self._phases: dict[str, str] = {}

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        super().__exit__(kind, _, __)
        if kind is KeyboardInterrupt and self._results is not None:
            count = self._known + self._done
            sentence = f"{self._results} has the results of {count} of {self._known + self._total} models"
            errors.print(f"{sentence}: the same command with --resume continues", soft_wrap=True)

    def begin(self, names: Sequence[str], known: int) -> None:
        """Show how many tasks will run, and how many results are known."""
        self._total, self._known, self._done, self._began = len(names), known, 0, time.monotonic()
        if known:
            errors.print(f"{known} of {known + len(names)} models have results in {self._results}", soft_wrap=True)
        if self._bar is not None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task("", total=len(names), names="", left="")

    def phase(self, name: str, phase: str) -> None:
        """Show a task that has started, or its next phase."""
        self._phases[name] = phase
        self._update()

    def end(self, name: str, said: str, seconds: float) -> None:
        """Show the result of a task, and the time of the remaining tasks if they are like the finished ones."""
        self._phases.pop(name, None)
        self._done += 1
        self._update()
        if self._bar is None:
            what = f"{name}, {self._what}" if self._what else name
            errors.print(f"{what}: {said}, {seconds:.1f} s ({self._place()})", soft_wrap=True)

    def _place(self) -> str:
        """`3 of 15, 40 s left`."""
        place, left = f"{self._done} of {self._total}", self._total - self._done
        spent = time.monotonic() - self._began
        return f"{place}, {duration(spent / self._done * left)} left" if left else place

    def _update(self) -> None:
        if self._bar is not None and self._task is not None:
            phases = {name: phase.partition(":")[0] for name, phase in self._phases.items()}
            running = [f"{name} ({phase})" if phase else name for name, phase in phases.items()]
            left = self._place().partition(", ")[2] if self._done else ""
            self._bar.update(self._task, completed=self._done, names="; ".join(running), left=left)


class Rows(_Shown):
    """The progress of a run over rows (`compiler.batch.Progress`): a bar on a terminal, otherwise a line per part."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = self._known = 0

    def begin(self, rows: int, known: int) -> None:
        """Show how many rows there are, and how many have results."""
        self._rows, self._known, self._began = rows, known, time.monotonic()
        if known:
            errors.print(f"{known:,} of {rows:,} rows have results", soft_wrap=True)
        if self._bar is not None:
            self._task = self._bar.add_task("", total=rows, completed=known, names="", left="")

    def batch(self, end: int) -> None:
        """Show on a terminal that the first rows up to `end` are computed."""
        if self._bar is not None and self._task is not None:
            rate, _, left = self._pace(end).partition(", ")
            self._bar.update(self._task, completed=end, names=rate, left=left)

    def part(self, name: str, end: int) -> None:
        """Show that a part is written."""
        if self._bar is None:
            errors.print(f"{name}: {end:,} of {self._rows:,} rows, {self._pace(end)}", soft_wrap=True)

    def _pace(self, end: int) -> str:
        """`1,500 rows/s, 40 s left`."""
        rate = (end - self._known) / max(time.monotonic() - self._began, 1e-9)
        return f"{rate:,.0f} rows/s, {duration((self._rows - end) / rate)} left" if rate else "0 rows/s"


class Downloads(_Shown):
    """The progress of downloads (`compiler.zoo.fetching.Arrival`): a bar on a terminal, otherwise a line per model."""

    def __init__(self) -> None:
        super().__init__()
        self._name = ""

    def bytes(self, name: str, size: int, total: int | None) -> None:
        """Show how much of a model has arrived."""
        if name != self._name:
            self._name = name
            if self._bar is None:
                of = f", {megabytes(total)}" if total else ""
                errors.print(f"{name}: downloading{of}", soft_wrap=True)
            else:
                self._task = self._bar.add_task("", total=total, names=name, left="")
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=size, total=total, left=megabytes(size))

    def wait(self, name: str) -> None:
        """Show that another process downloads the same file."""
        errors.print(f"{name}: another process downloads it, waiting", soft_wrap=True)


def duration(seconds: float) -> str:
    """`40 s`, `3 min`."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _bar() -> Progress:
    """A bar with the number of finished tasks, the names and phases of the others, and the time left."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Column

    names = TextColumn(
        "{task.fields[names]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
    )
    columns = (BarColumn(20), MofNCompleteColumn(), TextColumn("{task.fields[left]}", markup=False), names)
    return Progress(*columns, console=errors, transient=True, expand=True)
