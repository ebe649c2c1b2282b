"""The memory of the current process, as Linux counts it."""

from __future__ import annotations

import re
from pathlib import Path


def memory(field: str) -> int:
    """A field of `/proc/self/status`, in bytes.

    `VmHWM` is the peak of this program. `ru_maxrss` is not: it includes the peak of the process that started it.
    """
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10
