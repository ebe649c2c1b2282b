"""The profile of a model's plan: the time and the memory of each step."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import compiler
from compiler.bench.peaks import peaks_of
from compiler.runtime.processor import level_of
from compiler.zoo.shapes import pinned, unpinned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compiler import Plan
    from compiler.processes.child import Channel
    from compiler.runtime.prepared import Prepared
    from compiler.runtime.session import Session
    from compiler.zoo.task_arguments import Profile

__all__ = ["COLUMNS", "profile", "profile_of"]

COLUMNS = ("op", "kernel", "depth", "calls", "seconds", "operations", "bytes", "alive_bytes", "host", "origin")
"""The fields of each step (`compiler.runtime.steps.StepTime`). A step also has its `layer`."""

_THREADS, _RUNS = 1, 10


def profile(asked: Profile, channel: Channel) -> dict[str, Any]:
    """The times of the steps of the optimized plan for the first case, as data of `profile_of`.

    Raises:
        CompileError, InputError, RunError: the model is refused, or its plan cannot run the case.
        DeviceError: the device cannot be used.
    """
    entry = asked.entry
    inputs = entry.inputs(entry.cases[0])
    channel.phase("compile")
    model = pinned(entry.path, inputs) if asked.shapes == "pinned" else unpinned(entry.path)
    plan = compiler.compile(model, compiler.Options(**asked.compiling.options))
    channel.phase("load")
    session = compiler.load(plan, asked.device, _THREADS)
    channel.phase("run step by step")
    return profile_of(plan, session, inputs)


def profile_of(plan: Plan, session: Session, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The times of the steps of a plan in its session, as JSON data.

    The data has the `level` of the processor, the numbers of `threads` and of `runs`, the `peaks` of the processor in
    operations and bytes per second (`None` on a GPU), and the `steps` in the plan's order. Their numbers are sums over
    all runs, except `alive_bytes`.

    Raises:
        InputError, RunError: as `Session.run`.
    """
    times, prepared = session.profile(inputs, _RUNS), session.prepared()
    facts = {"level": level_of(prepared.isa), "threads": session.threads, "runs": _RUNS}
    peaks = asdict(peaks_of(session)) if session.device == "cpu" else None
    steps = ({key: getattr(step, key) for key in COLUMNS} for step in times)
    listed = [{**step, "layer": layer} for step, layer in zip(steps, _layers(plan, prepared), strict=True)]
    return {**facts, "peaks": peaks, "steps": listed}


def _layers(plan: Plan, prepared: Prepared) -> Iterator[str]:
    """The path of the PyTorch module of each step; empty if unknown. A step of a block has that of the outer step."""
    document, layer = plan.document, ""
    for step in prepared.steps:
        if not step.depth:
            layer = document["origins"][document["main"]["steps"][step.index]["origin"]]["module"]
        yield layer
