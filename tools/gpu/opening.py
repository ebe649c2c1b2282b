"""The time until the first result of a new process, with and without kernels in the driver's cache."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

import compiler
from gpu import files
from gpu.agreement import compared
from gpu.page import bullets
from gpu.process import Setting
from gpu.results import Result

FIRST, SECOND = "the first process", "the second process"
"""The driver has compiled no kernel before the first process, and all of them before the second."""
MODEL = "digits"

lines = bullets


def names(setting: Setting) -> list[str]:
    """The processes."""
    return [FIRST, SECOND]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Loads and runs a trained model, and times each step from the start of the process."""
    kernels = files.beside(setting.bundle) / "kernels-of-first"
    if name == FIRST:
        shutil.rmtree(kernels, ignore_errors=True)
    os.environ["CUDA_CACHE_PATH"] = str(kernels)
    section = "trained" if MODEL in files.names(setting.bundle, "trained") else "small"
    model = files.read(
        setting.bundle, section, MODEL if section == "trained" else files.names(setting.bundle, section)[0]
    )
    plan, case, times = compiler.Plan(model["plan"]), model["cases"][0], [started, time.monotonic()]
    session = compiler.load(plan, device=setting.device, threads=1)
    times.append(time.monotonic())
    for _ in range(2):
        session.run(case)
        times.append(time.monotonic())
    steps = ("imports", "loading", "first run", "second run")
    seconds = {step: end - start for step, start, end in zip(steps, times, times[1:], strict=False)}
    found = compared(model, session, model["cases"])
    told = ", ".join(f"{step} {value:.3f} s" for step, value in seconds.items())
    note = f"{times[3] - started:.2f} s until the first result of {model['name']}: {told}"
    yield found | {"seconds": seconds, "note": "; ".join(filter(None, (found.get("note"), note)))}
