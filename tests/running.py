"""Processes that a test has started: which run, and waiting for a change."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

SOON = 30.0
"""Seconds within which processes end on a busy machine."""


def children(pid: int) -> list[int]:
    """The processes that a process has started, and those that these have."""
    own = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*own, *(each for child in own for each in children(child))]


def is_there(pid: int) -> bool:
    """Whether a process runs: one that nobody has waited for yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(what: Callable[[], bool]) -> bool:
    end = time.monotonic() + SOON
    while not (found := what()) and time.monotonic() < end:
        time.sleep(0.05)
    return found
