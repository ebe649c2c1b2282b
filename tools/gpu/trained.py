"""The trained models, each in a separate process: results, times, and the split of the time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import compiler
from gpu import files
from gpu.agreement import compared, hosted, refuse_large
from gpu.device import has_same_bits
from gpu.page import table
from gpu.process import Setting
from gpu.results import Result
from gpu.split import COLUMNS, split
from gpu.timing import in_turns

SECONDS = 1.0
"""Seconds for the timed runs."""

NOTE = """✓ equals the CPU's result within the tolerance. ≈ is as close to onnxruntime's result as the CPU's must be.
Times are medians, with half the distance of the quartiles. `tune` counts the driver's calls."""
lines = table(
    {"inputs": "cases", "off, of the tolerance": "off", "loading, s": "loading", "host steps": "hosted"},
    {"run, ms": "run", "CPU, ms": "processor", **COLUMNS, "not timed": "untimed"},
    notes=[NOTE],
)


def names(setting: Setting) -> list[str]:
    """The models."""
    return files.names(setting.bundle, "trained")


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Compares every case of a model, then times its first case on the device and on the CPU."""
    model = files.read(setting.bundle, "trained", name)
    refuse_large(model, setting)
    plan, case = compiler.Plan(model["plan"]), model["cases"][0]
    start = time.perf_counter()
    there = compiler.load(plan, device=setting.device, threads=1)
    loading = time.perf_counter() - start
    found = compared(model, there, model["cases"]) | hosted(there) | {"loading": loading}
    yield found
    start = time.perf_counter()
    if not has_same_bits(there.run(case), there.run(case)):
        yield {"verdict": "different", "note": "two runs differ"}
    if time.perf_counter() - start > 2 * SECONDS:
        yield {"untimed": "a run takes too long to be timed"}
        return
    here = compiler.load(plan, threads=1)
    times = in_turns({"run": partial(there.run, case), "processor": partial(here.run, case)}, SECONDS)
    yield times
    yield {"split": split(there, case, setting.device)}
