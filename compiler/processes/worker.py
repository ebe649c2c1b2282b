"""The parent's view of a process that runs a task: its messages, its limits and its end."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

from compiler.custom_modules import imported_modules
from compiler.processes.child import work
from compiler.processes.ending import Ending, Kind, exit_text
from compiler.processes.memory import bytes_of_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext

    from compiler.processes.child import A, Task

__all__ = ["Limits", "Worker", "interrupts_held"]

STARTING = 60.0
"""The most seconds that a process may take to start."""
ENDING = 10.0
"""The most seconds to wait for the end of a process that was killed or has closed its pipe."""
MEMORY_INTERVAL = 0.02
"""The seconds between two measurements of memory."""
KEPT = 1 << 14
"""The number of bytes to keep of a process's standard error."""
SHOWN = 300
"""The number of characters to show of its last line."""


@dataclass(frozen=True)
class Limits:
    """The limits of a task: seconds, and bytes of memory beyond those of its process before it began.

    The memory is that of the process and of the processes that it has started.
    """

    seconds: float | None = None
    memory: int | None = None


@dataclass
class _Reported:
    """The messages of a process so far."""

    phase: str = ""
    parts: list[Any] = field(default_factory=list)
    idle_memory: int | None = None
    said: bytes = b""
    """The end of its standard error."""


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Delay Ctrl-C in this thread. Processes that start meanwhile never get it: their parent ends them.

    Otherwise, a process would print a traceback if Ctrl-C came while it imports modules.
    """
    resource_tracker.ensure_running()  # its start ends the delay
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Worker:
    """A process that runs a task. `index` names the task, and `on_phase` is called with each phase."""

    def __init__(
        self,
        context: BaseContext,
        task: Task[A],
        argument: A,
        index: int,
        limits: Limits,
        on_phase: Callable[[int, str], None],
    ) -> None:
        self.index, self._limits, self._on_phase = index, limits, on_phase
        self._reported = _Reported()
        self._pipe, theirs = context.Pipe(duplex=False)
        self._errors: Connection | None
        self._errors, their_errors = context.Pipe(duplex=False)
        given = (theirs, their_errors, task, argument, dict(os.environ), imported_modules())
        self._process = context.Process(target=work, args=given, daemon=True)  # type: ignore[attr-defined]
        with interrupts_held() if context.get_start_method() == "spawn" else nullcontext():  # a server starts late
            self._process.start()
        for end in (theirs, their_errors):
            end.close()
        self._began = time.monotonic()

    @property
    def waited_for(self) -> list[Connection]:
        """The connections that become ready when the process has sent a message or has ended."""
        return [self._pipe] if self._errors is None else [self._pipe, self._errors]

    @property
    def patience(self) -> float | None:
        """The most seconds to wait before the next check of the limits; `None` without limits."""
        if self._limits.memory is not None:
            return MEMORY_INTERVAL
        return max(self._deadline - time.monotonic(), 0.0) if self._deadline < float("inf") else None

    @property
    def _deadline(self) -> float:
        if self._reported.idle_memory is None:
            return self._began + STARTING
        return self._began + (float("inf") if self._limits.seconds is None else self._limits.seconds)

    def ending(self) -> Ending | None:
        """How the task ended; `None` while it works."""
        self._read_errors()
        if found := self._read():
            return found
        if time.monotonic() >= self._deadline:
            is_on = self._reported.idle_memory is not None
            limit = self._limits.seconds if is_on else STARTING
            return self._ended("timed out", f"it took more than {limit:g} s" + ("" if is_on else " to start"))
        limit_of_memory, idle = self._limits.memory, self._reported.idle_memory
        if limit_of_memory is not None and idle is not None:
            used = bytes_of_task(self._process.pid, idle)
            if used > limit_of_memory:
                words = f"it took {used / 1e6:.4g} MB of memory, but its limit is {limit_of_memory / 1e6:.4g} MB"
                return self._ended("out of memory", words)
        return None

    def end(self) -> None:
        """Kill the process and its children, and release everything."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.join(ENDING)
        for connection in self.waited_for:
            connection.close()

    def _read(self) -> Ending | None:
        """Read messages, up to one that ends the task."""
        try:
            while self._pipe.poll():
                kind, data = self._pipe.recv()
                if found := self._heard(kind, data):
                    return found
        except (EOFError, OSError):
            self._process.join(ENDING)
            self._read_errors()
            return self._ended("crashed", exit_text(self._process.exitcode, self._last_line()))
        return None

    def _heard(self, kind: str, data: Any) -> Ending | None:
        match kind:
            case "started":
                self._reported.idle_memory, self._began = data, time.monotonic()
            case "phase":
                self._reported.phase = data
                self._on_phase(self.index, data)
            case "part":
                self._reported.parts.append(data)
            case "done":
                return self._ended("done", "", result=data)
            case "raised":
                return self._ended("raised", **data)
            case "died":
                more = {"error": data.error, "traceback": data.traceback, "is_bug": data.is_bug}
                return self._ended(data.kind, data.message, **more)
            case _:
                return self._ended("out of memory", data)
        return None

    def _read_errors(self) -> None:
        """Keep the end of what the process writes to its standard error, so that it never waits for a reader."""
        while self._errors is not None and self._errors.poll():
            data = os.read(self._errors.fileno(), 1 << 16)
            self._reported.said = (self._reported.said + data)[-KEPT:]
            if not data:
                self._errors.close()
                self._errors = None

    def _last_line(self) -> str:
        """The last line before the traceback that Python writes when a process crashes."""
        text = self._reported.said.decode(errors="replace").partition("Fatal Python error:")[0]
        return text.strip().rpartition("\n")[2][-SHOWN:]

    def _ended(self, kind: Kind, message: str, **more: Any) -> Ending:
        report, seconds = self._reported, time.monotonic() - self._began
        return Ending(kind, parts=tuple(report.parts), phase=report.phase, message=message, seconds=seconds, **more)
