"""Networks with random weights, each in a separate process: results, times, and PyTorch's times."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import compiler
from gpu import drawn, files
from gpu.agreement import compared, refuse_large
from gpu.files import Model
from gpu.page import Cells, table
from gpu.peers import MODES, WAYS, peers
from gpu.process import Setting
from gpu.resident import ours
from gpu.results import LeftOut, NotRun, Result
from gpu.split import COLUMNS, split
from gpu.timing import in_turns
from gpu.torch_cuda import torch_on

SECONDS = 3.0
"""Seconds for all timed runs."""

TIMES: Cells = {
    "ours, host": "times.ours, host",
    "ours, resident": "times.ours, resident",
    "eager, f32, host": "times.eager, f32, host",
    "graph, half, host": "times.graph, half, host",
    **{f"{way}, {mode}": f"times.{way}, {mode}, resident" for mode in MODES for way in WAYS},
    "÷ eager, f32, host": lambda result: (
        result["times"]["ours, host"]["median"] / result["times"]["eager, f32, host"]["median"]
    ),
    "not timed": "untimed",
}
"""The columns of the plan's and PyTorch's times, in ms."""
NOTE = """The weights are random. Times of `host` begin and end in host memory, PyTorch's others on the device. All runs
of a line take turns in one process."""
lines = table(
    {"off, of the tolerance": "off", "loading, s": "loading"}, {"run, ms": "run", **COLUMNS}, TIMES, notes=[NOTE]
)


def names(setting: Setting) -> list[str]:
    """The networks with their batch sizes."""
    return files.names(setting.bundle, "networks")


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Compares a network with the CPU's results, then times it beside PyTorch."""
    model = files.read(setting.bundle, "networks", name)
    refuse_large(model, setting)
    case = drawn.inputs(model["inputs"])
    start = time.perf_counter()
    there = compiler.load(compiler.Plan(drawn.filled(model)), device=setting.device, threads=1)
    yield {"loading": time.perf_counter() - start} | compared(model, there, [case])
    yield {"run": in_turns({"run": partial(there.run, case)}, SECONDS / 4)["run"]}
    yield {"split": split(there, case, setting.device)}
    yield beside(model, case, there, setting)


def beside(model: Model, case: dict[str, Any], there: compiler.Session, setting: Setting) -> Result:
    """The plan's and PyTorch's times, in turns; for runs without a time, the reason."""
    try:
        torch = torch_on(setting.device)
        runs, untimed = peers(torch, network(model), case)
    except (NotRun, LeftOut) as error:
        return {"untimed": f"not run: {error}".replace("not run: not run:", "not run:")}
    runs_of_ours, without = ours(torch, there, case)
    return {"times": in_turns(runs_of_ours | runs, SECONDS), "untimed": untimed | without}


def network(model: Model) -> Any:
    """The network of a model in PyTorch, in evaluation mode."""
    return importlib.import_module(model["module"]).build(model["network"])
