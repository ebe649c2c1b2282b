"""The times of a model's plan and of other engines, for each number of threads."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import compiler
from compiler.bench.engines import PLAN
from compiler.bench.timing import time_case
from compiler.errors import CompileError, Diagnostic, Error, InputError, RunError
from compiler.ir.origin import Origin
from compiler.zoo.time_model import opened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.processes.child import Channel
    from compiler.rewrite.report import PassReport
    from compiler.zoo.task_arguments import Bench

__all__ = ["bench", "refusal_of"]


def bench(asked: Bench, channel: Channel) -> dict[str, Any]:
    """Time a case, and report each timing as a part, as soon as it is known.

    Returns the shapes of the `inputs`, and the `refusal` of the model or of its inputs; `None` for a model that runs.
    """
    inputs: dict[str, list[int]] = {}
    try:
        options = _options(asked, channel)
        with opened(asked.entry, options) if asked.own is None else asked.own.opened(options) as case:
            inputs = {name: list(np.shape(array)) for name, array in case.inputs.items()}
            placed, effort = replace(case, device=asked.device), asked.effort
            engines = [PLAN, *(name for name, _ in asked.engines if case.model)]
            for threads in effort.counts:
                now = effort.cold and threads == effort.counts[0]
                timing = time_case(
                    placed, engines, threads, effort.seconds, effort.processes, cold=now, on_phase=channel.phase
                )
                channel.part(timing.stored)
    except (CompileError, InputError, RunError) as error:
        return {"inputs": inputs, "refusal": _refusal(error)}
    return {"inputs": inputs, "refusal": None}


def _options(asked: Bench, channel: Channel) -> compiler.Options:
    """The options of the compilation, which reports the passes."""
    channel.phase("compile")

    def note(done: PassReport) -> None:
        channel.phase(f"compile: after the pass {done.name}")

    return compiler.Options(**asked.compiling.options, on_pass=note)


def _refusal(error: Error) -> dict[str, Any]:
    """An error as JSON data."""
    diagnostics = error.diagnostics if isinstance(error, CompileError) else []
    return {"message": str(error), "diagnostics": [asdict(each) for each in diagnostics]}


def refusal_of(data: Mapping[str, Any]) -> Error:
    """The error that JSON data describes, with its text, and its diagnostics if it has any."""
    if not data["diagnostics"]:
        return Error(data["message"])
    return CompileError(Diagnostic(**{**each, "origin": _origin(each["origin"])}) for each in data["diagnostics"])


def _origin(data: Mapping[str, Any] | None) -> Origin | None:
    return None if data is None else Origin(**{**data, "nodes": tuple(data["nodes"])})
