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
from pathlib import Path
from typing import IO

from cuda_results import GOOD, Result
from cuda_work import names

PATIENCE = 60
"""Seconds that one thing may take, the start of its process and the driver's compilation of kernels among them."""
ENDING = 20
"""Seconds that a process may take to end."""
LAST = 300
"""Characters of what a process said last."""
LOST = ("ILLEGAL", "LAUNCH_FAILED", "MISALIGNED", "CUDA_ERROR", "cuBLAS")
"""Words of errors after which nothing runs in their process."""


class Process:
    """A process that prints results as lines of JSON; what it says of errors is kept in a file."""

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the process)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors)
        assert self._process.stdout is not None
        self._results: queue.Queue[Result | None] = queue.Queue()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def _read(self, printed: IO[bytes]) -> None:
        for line in printed:
            if line.startswith(b"{"):  # libraries print too
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
        """How the process ended, where that is not well: to be asked after its last result."""
        try:
            code = self._process.wait(ENDING)
        except subprocess.TimeoutExpired:
            return f"its process did not end in {ENDING} s"
        self._errors.seek(0)
        words = self._errors.read().decode(errors="replace").strip().rpartition("\n")[2][-LAST:]
        return f"its process ended with {code}: {words}" if code else ""

    def end(self) -> None:
        """Ends it, if it has not ended; one that a driver holds is left to itself."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING)
        self._errors.close()


class Work:
    """What is to be checked in a section of a bundle: in a process, and in another where that ends early.

    `left` are the names without a result, and `reason` says why.
    """

    def __init__(self, section: str, bundle: Path, device: str, deadline: float) -> None:
        self.names = names(section, bundle)
        self.reason = ""
        self._start = 0
        self._deadline = deadline
        self._command = command(section, bundle, device)

    @property
    def left(self) -> list[str]:
        """The names of what has no result."""
        return self.names[self._start :]

    def results(self) -> Iterator[Result]:
        """The results, in order; what a process was at when it ended or hung has failed."""
        while self.left and not self._is_over():
            process = Process([*self._command, "--start", str(self._start)])
            try:
                yield from self._results(process)
            finally:
                process.end()

    def _results(self, process: Process) -> Iterator[Result]:
        """The results of one process."""
        while self.left:
            try:
                result = process.result(min(PATIENCE, self._deadline - time.monotonic()))
            except TimeoutError:
                if not self._is_over():
                    yield self._failed(f"it took more than {PATIENCE} s")
                return
            if result is None:
                yield self._failed(process.fault() or "its process ended")
                return
            if result["verdict"] == "refused":
                self.reason = result["note"]
                return
            self._start = result["number"] + 1
            yield result
            if is_lost(result):
                return
        if fault := process.fault():
            yield {"name": "the end", "verdict": "failed", "note": fault}

    def _failed(self, note: str) -> Result:
        """What is said of what a process was at."""
        name = self.left[0]
        self._start += 1
        return {"name": name, "verdict": "failed", "note": note}

    def _is_over(self) -> bool:
        if not self.reason and time.monotonic() >= self._deadline:
            self.reason = "time was up"
        return self.reason != ""


def command(section: str, bundle: Path, device: str) -> list[str]:
    """What starts a process for a section."""
    work = Path(__file__).with_name("cuda_work.py")
    return [sys.executable, str(work), section, "--bundle", str(bundle), "--device", device]


def refusal(bundle: Path, device: str) -> str:
    """Why a device cannot be used; empty where it can."""
    process = Process(command("open", bundle, device))
    try:
        result = process.result(PATIENCE)
        return process.fault() if result is None else str(result["note"])
    except TimeoutError:
        return f"device {device!r}: it did not open in {PATIENCE} s"
    finally:
        process.end()


def is_lost(result: Result) -> bool:
    """Whether a result is an error after which nothing runs in its process."""
    return result["verdict"] not in GOOD and any(word in result.get("note", "") for word in LOST)


def printed(command: Sequence[str], seconds: float) -> str:
    """What a command prints, and says of errors.

    Raises:
        TimeoutError: it takes longer; then all that it started has been ended.
    """
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(command, stdout=told, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
        finally:
            with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(ENDING)
        told.seek(0)
        return told.read().decode(errors="replace")
