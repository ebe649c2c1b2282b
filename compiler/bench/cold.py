"""The cold start of an engine in a separate process: load time, first run, and peak memory."""

from __future__ import annotations

import gc
import importlib
import re
import statistics
import time
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.bench.engines import ENGINES
from compiler.processes.fresh import in_fresh_process

if TYPE_CHECKING:
    from compiler.bench.engines import Case

__all__ = ["Cold", "measure_cold"]

PROCESSES, RUNS = 3, 5
PAGE = 4096 / 1e6
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class Cold:
    """Milliseconds of the load and of the first run, and megabytes of peak memory above that of an idle process.

    The idle process has imported the engine's package, and holds the inputs. The memory is at least one page, and NaN
    on systems other than Linux, which do not report it.
    """

    load: float
    first: float
    peak: float


def measure_cold(case: Case, engine: str, threads: int) -> Cold:
    """The medians over `PROCESSES` processes.

    Raises:
        ReferenceFailed: the engine cannot run the case.
    """
    found = [in_fresh_process(start, case, engine, threads) for _ in range(PROCESSES)]
    return Cold(*map(statistics.median, zip(*map(astuple, found), strict=True)))


def start(case: Case, engine: str, threads: int) -> Cold:
    """Load and run a case in this process."""
    importlib.import_module(ENGINES[engine].package)
    gc.collect()
    bare = _reset_peak()
    began = time.perf_counter()
    run = ENGINES[engine].load(case, threads)
    loaded = time.perf_counter()
    run()
    ran = time.perf_counter()
    for _ in range(RUNS):
        run()
    return Cold(1e3 * (loaded - began), 1e3 * (ran - loaded), max(_megabytes("VmHWM") - bare, PAGE))


def _reset_peak() -> float:
    """Reset the peak, and return the present memory in megabytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:  # the peak then includes the imports
        return _megabytes("VmHWM")
    return _megabytes("VmRSS")


def _megabytes(field: str) -> float:
    if not STATUS.exists():
        return float("nan")
    found = re.search(rf"^{field}:\s*(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    return int(found[1]) * 1024 / 1e6 if found else float("nan")
