"""The times of a model's plan and of onnxruntime, in turns in one process: runs, and the steps before the first run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import compiler
from compiler.accuracy.reference import ReferenceFailed
from compiler.bench.engines import PLAN
from compiler.bench.saved import saved
from compiler.bench.turns import time_in_turns
from compiler.errors import Error
from compiler.zoo.shapes import pinned
from compiler.zoo.time_starts import start_times

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from compiler.bench.engines import Case
    from compiler.processes.child import Channel
    from compiler.zoo.index import Entry
    from compiler.zoo.task_arguments import Time

__all__ = ["opened", "time"]

_REFERENCE = "onnxruntime"
_THREADS, _SECONDS = 1, 2.0


def time(asked: Time, channel: Channel) -> dict[str, float]:
    """The milliseconds of a run of the plan and of onnxruntime, by engine, and of the steps before the first run.

    Both engines have one thread.

    Raises:
        CompileError, InputError, RunError: the model is refused, or its plan cannot run the case.
        ReferenceFailed: onnxruntime refuses the model, or cannot run it.
    """
    channel.phase("compile")
    options = compiler.Options(**asked.compiling.options)
    with opened(asked.entry, options) as case:
        channel.phase("run in turns with onnxruntime")
        turns = time_in_turns(case, (PLAN, _REFERENCE), _THREADS, _SECONDS)
        if _REFERENCE in turns.failed:
            raise ReferenceFailed(turns.failed[_REFERENCE])
        channel.phase("start in turns with onnxruntime")
        starts = start_times(asked.entry.path, case, options, _THREADS)
    return {name: times.milliseconds for name, times in turns.times.items()} | starts


def opened(entry: Entry, options: compiler.Options) -> AbstractContextManager[Case]:
    """The first case of a model, compiled for the shapes of its inputs."""
    if entry.unfetched:
        raise Error(entry.unfetched)
    inputs = entry.inputs(entry.cases[0])
    plan = compiler.compile(pinned(entry.path, inputs), options)
    return saved(entry.name, plan, inputs, entry.path)
