"""Times of some networks under torch.compile. Compilation is slow, so each mode has a separate process."""

from __future__ import annotations

import time
from collections.abc import Iterator

import compiler
from gpu import drawn, files
from gpu.agreement import refuse_large
from gpu.networks import SECONDS, network
from gpu.page import table
from gpu.peers import peers
from gpu.process import Setting
from gpu.resident import ours
from gpu.results import Result
from gpu.timing import in_turns
from gpu.torch_cuda import torch_on

NETWORKS = ("resnet50-b32", "bert_base-b32", "hifigan-b1")
MODES = ("half", "tf32", "f32")
"""The modes, most important first."""

NOTE = """Times in ms. Those of `host` begin and end in host memory. Inputs and outputs of the others stay on the
device."""
lines = table({"compiling, s": "compiling", "times": "times", "not timed": "untimed"}, notes=[NOTE])


def names(setting: Setting) -> list[str]:
    """The networks in every mode."""
    there = files.names(setting.bundle, "networks")
    return [f"{name}, {mode}" for mode in MODES for name in NETWORKS if name in there]


def results(name: str, setting: Setting, started: float) -> Iterator[Result]:
    """Compiles a network in one mode, and times it beside the plan, both from the host and resident."""
    which, _, mode = name.partition(", ")
    torch = torch_on(setting.device)
    model = files.read(setting.bundle, "networks", which)
    refuse_large(model, setting)
    case = drawn.inputs(model["inputs"])
    start = time.perf_counter()
    runs, untimed = peers(torch, network(model), case, ways=["compiled"], modes=[mode])
    yield {"compiling": time.perf_counter() - start, "untimed": untimed}
    there = compiler.load(compiler.Plan(drawn.filled(model)), device=setting.device, threads=1)
    runs_of_ours, without = ours(torch, there, case)
    yield {"times": in_turns(runs_of_ours | runs, SECONDS / 2), "untimed": untimed | without}
