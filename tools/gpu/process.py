"""Runs checks in monitored processes, with time limits, so that no process hangs or blocks on a full pipe."""

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
"""The time limit of one check in seconds, with the start of its process and the driver's compilation of kernels."""
ENDING = 20
"""The time limit in seconds for a process to exit."""
KILLING = 5
"""The time limit in seconds for a killed process to end."""
TIME_WAS_UP = "time was up"
"""The reason for a check that did not run."""
LAST = 300
"""The number of characters of a process's last error output to show."""
LOST = ("ILLEGAL", "LAUNCH_FAILED", "MISALIGNED", "CUDA_ERROR", "cuBLAS")
"""Words of errors after which their process cannot use the GPU."""


@dataclass(frozen=True)
class Setting:
    """The bundle, the device, the deadline (by `time.monotonic`), and the folder of the results."""

    bundle: Path
    device: str
    deadline: float
    out: Path

    @property
    def left(self) -> float:
        """The remaining seconds."""
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
            if line.startswith(b"{"):  # libraries may print other lines
                with contextlib.suppress(ValueError):
                    self._results.put(json.loads(line))
        self._results.put(None)

    def result(self, seconds: float) -> Result | None:
        """The next result; `None` after the last one.

        Raises:
            TimeoutError: the process prints no result for this time.
        """
        try:
            return self._results.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise TimeoutError from None

    def fault(self) -> str:
        """The failure of the process; an empty string if it succeeded. Call it after the last result."""
        try:
            code = self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            return f"its process did not end in {ENDING} s"
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2][-LAST:]
        return f"its process ended with {code}: {words}" if code else ""

    def end(self) -> None:
        """Kills the process and its children. A process that is blocked in a driver is abandoned."""
        _kill(self._process)
        self._errors.close()


class Work:
    """The checks of a section, in processes of `together` checks each. Another process replaces one that ends early.

    `left` are the names of checks without a result, and `reason` is the reason for them.
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
        """The names of checks without a result."""
        return self.names[self._start :]

    def results(self) -> Iterator[Result]:
        """The results in order, including partial ones. A check whose process ends or hangs fails."""
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
        """The result of a check whose process ended or hung: its partial result, and the failure."""
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
    """The reason why a device is unusable; an empty string if it is usable."""
    process = Process(command("open", setting))
    try:
        result = process.result(PATIENCE)
        return process.fault() if result is None else str(result["note"])
    except TimeoutError:
        return f"device {setting.device!r}: it did not open in {PATIENCE} s"
    finally:
        process.end()


def is_lost(result: Result) -> bool:
    """Whether a result is an error after which its process cannot use the GPU."""
    return result["verdict"] not in GOOD and any(word in result.get("note", "") for word in LOST)


def printed(command: Sequence[str], seconds: float) -> str:
    """The standard output and error of a command, which ends at the latest when this thread ends.

    Raises:
        TimeoutError: the command takes longer. It and its children have been killed.
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
    """Kills a process's group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILLING)
