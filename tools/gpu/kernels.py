"""The time of every kernel of some plans, by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

from gpu import files
from gpu.chosen import chosen, opened, profiled
from gpu.page import table
from gpu.process import Setting
from gpu.results import NotRun, Result
from gpu.torch_cuda import torch_on
from gpu.trace import KERNEL, of, traced

RUNS = 5
SHOWN = 6
COVERAGE = "the plans for compute-sanitizer"
"""The check that the plans for compute-sanitizer launch every kernel whose threads share memory."""

lines = table({"µs a run, by kernel": "shown"})


def names(setting: Setting) -> list[str]:
    """The plans, and the check of the plans for compute-sanitizer."""
    return [*profiled(setting), COVERAGE]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Microseconds and launches per run of each kernel, and whether the kernel belongs to this project."""
    torch = torch_on(setting.device)
    if name == COVERAGE:
        yield coverage(torch, setting)
        return
    session, case = chosen(name, setting)
    found = of(traced(torch, partial(session.run, case), RUNS), KERNEL)
    if not found:
        raise NotRun("PyTorch's profiler recorded no kernel")
    ours = {kernel.partition("/")[2] for kernel in files.about(setting.bundle)["kernels"]}
    taken: dict[str, list[float]] = defaultdict(list)
    for event in found:
        taken[event.name].append(event.duration)
    kernels: list[dict[str, Any]] = [
        {"kernel": kernel, "us": sum(times) / RUNS, "launches": len(times) / RUNS, "is_ours": kernel in ours}
        for kernel, times in sorted(taken.items(), key=lambda each: -sum(each[1]))
    ]
    shown = [f"{each['kernel'][:60]} {each['us']:.0f} ({each['launches']:.0f} ×)" for each in kernels[:SHOWN]]
    yield {"kernels": kernels[:100], "shown": shown}


def coverage(torch: Any, setting: Setting) -> Result:
    """The kernels whose threads share memory that no plan for compute-sanitizer launches."""
    groups = [
        files.read(setting.bundle, "sanitized", name)["group"] for name in files.names(setting.bundle, "sanitized")
    ]
    runs = [
        partial(session.run, case) for session, case in (opened(each, setting) for group in groups for each in group)
    ]
    launched = {event.name for event in of(traced(torch, lambda: [run() for run in runs], 1), KERNEL)}
    cooperative = [name for name, is_shared in files.about(setting.bundle)["kernels"].items() if is_shared]
    missing = [name for name in cooperative if name.partition("/")[2] not in launched]
    note = f"{len(cooperative) - len(missing)} of {len(cooperative)} launched"
    return {"note": note, "missing": missing, "shown": missing}
