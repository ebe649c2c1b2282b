"""Runs tasks in processes of their own, several at a time."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.processes.worker import Limits, Worker, interrupts_held

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from multiprocessing.context import BaseContext

    from compiler.processes.child import A, Task
    from compiler.processes.ending import Ending

__all__ = ["Limits", "run_tasks", "usable_processors"]


def usable_processors() -> int:
    """The number of processors that this process may use, by its affinity and the quota of its cgroup."""
    from compiler import _runtime

    return _runtime.usable_processors()


def run_tasks(
    task: Task[A],
    arguments: Sequence[A],
    *,
    jobs: int = 1,
    limits: Limits | None = None,
    on_phase: Callable[[int, str], None] = lambda _index, _phase: None,
    modules: Sequence[str] = (),
    fresh: bool = False,
) -> Generator[tuple[int, Ending], None, None]:
    """Run a task for each argument, in a process each, at most `jobs` at a time.

    The function yields the index of an argument and the ending of its task, as soon as the task ends. It calls
    `on_phase` with an index and each phase that the task reports, first with an empty phase when the process starts.

    On Linux, each process begins as a copy of one that has imported `modules`. They must not start threads, which a
    copy would lack. A `fresh` process begins with a new interpreter, and has memory addresses of its own.

    If the caller closes the iterator, all processes end. They also end with this process.
    """
    if not arguments:
        return
    context = multiprocessing.get_context("spawn") if fresh or sys.platform != "linux" else _server(modules)
    waiting, active = deque(enumerate(arguments)), list[Worker]()
    try:
        while waiting or active:
            while waiting and len(active) < jobs:
                index, argument = waiting.popleft()
                on_phase(index, "")
                active.append(Worker(context, task, argument, index, limits or Limits(), on_phase))
            _wait(active)
            for worker in list(active):
                if (ending := worker.ending()) is not None:
                    active.remove(worker)
                    worker.end()
                    yield worker.index, ending
    finally:
        for worker in active:
            worker.end()


def _wait(active: Sequence[Worker]) -> None:
    """Wait until a process has sent a message, or until it is time to check a limit."""
    patience = [each for each in (worker.patience for worker in active) if each is not None]
    wait([each for worker in active for each in worker.waited_for], min(patience, default=None))


def _server(modules: Sequence[str]) -> BaseContext:
    """The way to start processes as copies of a server that has imported the modules. On Linux, this is reliable."""
    with _same_path(), interrupts_held():
        forkserver.set_forkserver_preload(list(modules))
        forkserver.ensure_running()
    return multiprocessing.get_context("forkserver")


@contextmanager
def _same_path() -> Iterator[None]:
    """Let the server import the same modules as this process: it ignores `sys.path` before Python 3.13."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(str(Path(each).absolute()) for each in sys.path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
