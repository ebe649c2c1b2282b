"""The memory that belongs to a process alone, as Linux counts it.

A limit of the address space (`RLIMIT_AS`) is no measure of this memory. Allocators and onnxruntime reserve gigabytes of
addresses that they never use, and a mapped file needs addresses but hardly any memory. The parent therefore reads the
resident anonymous pages of each process. The system cannot take these pages back.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["anonymous_bytes", "bytes_of_task", "is_measured", "offer_to_system"]


def is_measured() -> bool:
    """Whether this system reports the memory of processes."""
    return Path("/proc/self/statm").exists()


def anonymous_bytes(pid: int | str) -> int:
    """The resident bytes of a process that no file backs; 0 if the process has ended, or if the system is not Linux."""
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text().split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def bytes_of_task(pid: int, idle: int) -> int:
    """The resident bytes of a process and of those that it has started, each beyond those of an idle process."""
    return sum(max(anonymous_bytes(each) - idle, 0) for each in (pid, *_children(pid)))


def _children(pid: int) -> list[int]:
    """The processes that the main thread of a process has started; none if it has ended."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def offer_to_system() -> None:
    """Let Linux end this process, and not its parent, if the machine lacks memory."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:  # another system
        return
