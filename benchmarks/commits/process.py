"""A process with the compiler of one checkout, which times models in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.zoo.index import Entry

__all__ = ["Failed", "Worker"]

WORKER = Path(__file__).parent / "worker.py"
TURN = 0.01
"""Seconds of one turn."""


class Failed(Exception):
    """A commit cannot compile or run a model. The text gives the reason."""


class Worker:
    """A process with the compiler of one checkout."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, str(WORKER)]
        pipe = subprocess.PIPE
        self.folder = folder
        self.process = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()  # waits for its end, and closes the pipes

    def load(self, entry: Entry, threads: int) -> None:
        """Compiles a model for its first case, and runs it once.

        Raises:
            Failed: the commit refuses the model, or another compiler than that of the checkout was imported.
        """
        files = {"model": str(entry.path.absolute()), "case": str(entry.cases[0].absolute())}
        answer = self.ask({**files, "threads": threads, "processors": processors(threads)})
        if Path(answer["compiler"]).resolve() != self.folder.resolve():
            raise Failed(f"{self.folder} uses the compiler in {answer['compiler']}")

    def turn(self) -> list[float]:
        """Milliseconds of the runs of one turn. The first of several does not count, because the caches are cold."""
        times: list[float] = self.ask({"seconds": TURN})["milliseconds"]
        return times[1:] or times

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request.

        Raises:
            Failed: the answer is an error, or the process has ended.
        """
        pipes = self.process.stdin, self.process.stdout
        if pipes[0] is None or pipes[1] is None:
            raise ValueError("the worker has pipes")
        with suppress(BrokenPipeError):  # then there is no answer
            print(json.dumps(request), file=pipes[0], flush=True)
        if not (line := pipes[1].readline()):
            raise Failed(f"the process of {self.folder} ended with exit code {self.process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise Failed(f"{self.folder}: {answer['error']}")
        return answer


def processors(threads: int) -> list[int]:
    """The processors of both workers: as many as threads, if there are so many."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return [*usable][:threads]
