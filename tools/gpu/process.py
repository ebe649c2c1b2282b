"""Processes that check something, watched: none hangs, fills a pipe or takes more than its time unnoticed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gpu.results import GOOD, Result

PATIENCE = 60
"""Seconds that one check may take, with the start of its process and the driver's translation of kernels."""
ENDING = 20
"""Seconds that a process may take to end by itself."""
KILLING = 5
"""Seconds that a killed process may take to end."""
TIME_WAS_UP = "time was up"
"""Why a check did not run."""
LAST = 300
"""Characters of a process's last words."""
LOST = ("ILLEGAL", "LAUNCH_FAILED", "MISALIGNED", "CUDA_ERROR", "cuBLAS")
"""Words of errors after which nothing runs in their process."""


@dataclass(frozen=True)
class Setting:
    """Where checks run, until when (by `time.monotonic`), and the folder of the results."""

    bundle: Path
    device: str
    deadline: float
    out: Path

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.deadline - time.monotonic()


class Process:
    """A process that prints results as lines of JSON; a file keeps its errors."""

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True
        )
        assert self._process.stdout is not None
        self._results: queue.Queue[Result | None] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def _read(self, printed: IO[bytes]) -> None:
        for line in printed:
            if line.startswith(b"{"):  # libraries print too
                with contextlib.suppress(ValueError):
                    self._results.put(json.loads(line))
        self._results.put(None)

    def result(self, seconds: float) -> Result | None:
        """The next result; None where there are no more.

        Raises:
            TimeoutError: there is none in so many seconds.
        """
        try:
            return self._results.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise TimeoutError from None

    def fault(self) -> str:
        """How the process ended, where it failed: to be asked after its last result."""
        try:
            code = self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            return f"its process did not end in {ENDING} s"
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2][-LAST:]
        return f"its process ended with {code}: {words}" if code else ""

    def end(self) -> None:
        """Ends it and all that it started; one that a driver holds is left to itself."""
        _kill(self._process)
        self._errors.close()


class Work:
    """The checks of a section, in processes of `together` checks each; what ends early is followed by another.

    `left` are the names without a result, and `reason` says why.
    """

    def __init__(
        self, section: str, names: Sequence[str], setting: Setting, together: int = 1, patience: float = PATIENCE
    ) -> None:
        self.names = list(names)
        self.reason = ""
        self._section, self._setting = section, setting
        self._together, self._patience = together, patience
        self._start = 0

    @property
    def left(self) -> list[str]:
        """The names of what has no result."""
        return self.names[self._start :]

    def results(self) -> Iterator[Result]:
        """The results in order, partial ones among them; a check whose process ended or hung has failed."""
        while self.left and not self._is_over():
            process = Process(self._command())
            try:
                yield from self._results(process)
            finally:
                process.end()

    def _command(self) -> list[str]:
        stop = min(self._start + self._together, len(self.names))
        return [*command(self._section, self._setting), "--start", str(self._start), "--stop", str(stop)]

    def _results(self, process: Process) -> Iterator[Result]:
        """The results of one process."""
        known: Result = {}
        stop = min(self._start + self._together, len(self.names))
        while self._start < stop:
            try:
                result = process.result(min(self._patience, self._setting.left))
            except TimeoutError:
                is_over = self._is_over()
                if known or not is_over:
                    words = TIME_WAS_UP if is_over else f"it took more than {self._patience:.0f} s"
                    yield self._ended(known, "not run" if is_over else "failed", words)
                return
            if result is None:
                yield self._ended(known, "failed", process.fault() or "its process ended")
                return
            yield result
            if result.get("partial"):
                known = result
                continue
            known, self._start = {}, result["number"] + 1
            if is_lost(result):
                return
        if fault := process.fault():
            yield {"name": f"the end of {self.names[self._start - 1]}", "verdict": "failed", "note": fault}

    def _ended(self, known: Result, verdict: str, note: str) -> Result:
        """The result of a check whose process ended or hung: what it had found, and how it ended."""
        name = self.left[0]
        self._start += 1
        return {**known, "partial": False, "name": name, "verdict": verdict, "note": note}

    def _is_over(self) -> bool:
        if not self.reason and self._setting.left <= 0:
            self.reason = TIME_WAS_UP
        return self.reason != ""


def command(section: str, setting: Setting) -> list[str]:
    """The command of a process for a section."""
    work = Path(__file__).with_name("work.py")
    facts = ["--bundle", str(setting.bundle), "--device", setting.device, "--out", str(setting.out)]
    times = ["--deadline", repr(setting.deadline), "--started", repr(time.monotonic())]
    return [sys.executable, str(work), section, *facts, *times]


def refusal(setting: Setting) -> str:
    """Why a device cannot be used; empty where it can."""
    process = Process(command("open", setting))
    try:
        result = process.result(PATIENCE)
        return process.fault() if result is None else str(result["note"])
    except TimeoutError:
        return f"device {setting.device!r}: it did not open in {PATIENCE} s"
    finally:
        process.end()


def is_lost(result: Result) -> bool:
    """Whether a result is an error after which nothing runs in its process."""
    return result["verdict"] not in GOOD and any(word in result.get("note", "") for word in LOST)


def printed(command: Sequence[str], seconds: float) -> str:
    """What a command prints to both of its streams. It ends with this thread, however that ends.

    Raises:
        TimeoutError: it takes longer; then it and all that it started have been ended.
    """
    with tempfile.TemporaryFile() as told:
        ending = [sys.executable, "-I", "-S", str(Path(__file__).with_name("ending.py"))]
        process = subprocess.Popen(
            [*ending, *command],
            stdin=subprocess.DEVNULL,
            stdout=told,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            _kill(process)
        told.seek(0)
        return told.read().decode(errors="replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Ends a process's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILLING)
