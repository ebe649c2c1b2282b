"""Runs a command that the system ends when its parent process ends: PROGRAM ARGUMENT...

This is a separate program, because no code may run between fork and exec in a process with several threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_END_WITH_PARENT = 1
"""`PR_SET_PDEATHSIG` of Linux, which exec preserves."""


def end_with_parent() -> None:
    """Asks the system to end this process when its parent ends for any reason."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


if __name__ == "__main__":
    end_with_parent()
    os.execvp(sys.argv[1], sys.argv[1:])
