"""A small model for every path of the backend: kernels, cuBLAS, steps on the host, control flow."""

from __future__ import annotations

import time
from collections.abc import Iterator

import compiler
from gpu import files
from gpu.agreement import compared, held, hosted
from gpu.page import table
from gpu.process import Setting
from gpu.results import Result

lines = table({"off, of the tolerance": "off", "first run, s": "first"})


def names(setting: Setting) -> list[str]:
    """The names of the models."""
    return files.names(setting.bundle, "paths")


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Compares the outputs of one model, and times its first run."""
    held(setting.device, setting)
    model = files.read(setting.bundle, "paths", name)
    session = compiler.load(compiler.Plan(model["plan"]), device=setting.device, threads=1)
    start = time.perf_counter()
    session.run(model["cases"][0])
    first = time.perf_counter() - start
    yield compared(model, session, model["cases"]) | hosted(session) | {"first": first}
