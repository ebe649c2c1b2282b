"""Processes and work that a test has started: which processes run, waiting for a change, and how work grows."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

SOON = 300.0
"""Seconds within which a process ends, or something else happens, on a slow and busy machine."""


def children(pid: int) -> list[int]:
    """The running descendants of a process; empty if the process has ended."""
    try:
        own = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [*own, *(each for child in own for each in children(child))]


def is_there(pid: int) -> bool:
    """Whether a process runs. A zombie does not run."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what: Callable[[], bool]) -> bool:
    """Wait up to `SOON` seconds until a condition holds. Returns whether it holds."""
    end = time.monotonic() + SOON
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


def calls_of(work: Callable[[], object]) -> int:
    """The number of function calls that the work makes. It does not depend on the machine."""
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def grows_linearly(work: Callable[[int], object], small: int, large: int) -> bool:
    """Whether the time of the work grows at most three times as fast as its size.

    Measures processor time, which other programs affect little, and takes the shortest of three times.
    """
    shortest: dict[int, float] = {}
    for _ in range(3):
        for size in (small, large):
            start = time.process_time()
            work(size)
            taken = time.process_time() - start
            shortest[size] = min(taken, shortest.get(size, taken))
        if shortest[large] / shortest[small] <= 3 * large / small:
            return True
    return False
