"""Events of runs that CUPTI records through PyTorch's profiler: kernels and copies, with their names and times."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KERNEL, COPY, FILL, WAIT = "kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"
RUN = "run of the plan"


@dataclass(frozen=True)
class Event:
    """A recorded event; times are in µs."""

    category: str
    name: str
    start: float
    duration: float
    bytes: int = 0

    @property
    def end(self) -> float:
        """The end time."""
        return self.start + self.duration


def traced(torch: Any, run: Callable[[], Any], runs: int) -> list[Event]:
    """The events of `runs` runs, after two unrecorded ones."""
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, experimental_config=with_waits(torch)) as profile:
        for _ in range(runs):
            with torch.profiler.record_function(RUN):
                run()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(file))
        return events(json.loads(file.read_text()))


def end_after_profiling() -> None:
    """Ends the process at once if PyTorch is loaded.

    On an H100, some processes that had profiled aborted at their end with a corrupt heap, and none of the others.
    The cause is not proven. PyTorch's profiler has had such aborts: https://github.com/pytorch/pytorch/pull/195471
    """
    if "torch" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def with_waits(torch: Any) -> Any:
    """The setting with which the profiler records waits; `None` if PyTorch lacks it."""
    try:
        return torch._C._profiler._ExperimentalConfig(enable_cuda_sync_events=True)
    except (AttributeError, TypeError):
        return None


def events(trace: dict[str, Any]) -> list[Event]:
    """The events of a trace in Chrome's format that have a duration."""
    return [
        Event(
            each.get("cat", ""),
            each["name"],
            float(each["ts"]),
            float(each["dur"]),
            int(each.get("args", {}).get("bytes", 0)),
        )
        for each in trace["traceEvents"]
        if each.get("ph") == "X" and "dur" in each
    ]


def of(found: Iterable[Event], category: str, word: str = "") -> list[Event]:
    """The events of a category whose names contain a word."""
    return [event for event in found if event.category == category and word in event.name]


def microseconds(found: Iterable[Event]) -> float:
    """The sum of the durations."""
    return sum(event.duration for event in found)
