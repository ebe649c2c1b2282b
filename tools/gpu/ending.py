"""Runs a command that the system ends when the process that started it ends: PROGRAM ARGUMENT...

It is a program of its own, because nothing may run between fork and exec in a process that has other threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_END_WITH_PARENT = 1
"""`PR_SET_PDEATHSIG` of Linux, which a new program keeps."""


def end_with_parent() -> None:
    """Lets the system end this process when its parent ends, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    end_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])
