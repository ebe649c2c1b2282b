"""A task of `candlec bench` that crashes, hangs, or takes memory, for tests."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from compiler.bench.timing import Timing
from compiler.bench.turns import Times, Turns
from compiler.processes.child import Channel
from compiler.processes.fresh import in_fresh_process
from compiler.zoo.task_arguments import Bench
from tests.tasks import HANGING, allocate

__all__ = ["bench_or_end"]


def bench_or_end(asked: Bench, channel: Channel) -> dict[str, Any]:
    """Log the call, and report a time with one thread. A model's name may ask for a crash or another end after it."""
    name = asked.entry.name
    with Path("timed.log").open("a") as log:
        log.write(f"{name}\n")
    times = {engine: Times(each, each, each, 5) for engine, each in {"plan": 0.61, "onnxruntime": 1.0}.items()}
    channel.part(Timing(name, 1, (Turns(times, {}),)).stored)
    channel.phase("run with 2 threads")
    match name:
        case "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "hang":
            time.sleep(HANGING)
        case "large":
            in_fresh_process(allocate, 400_000_000)
        case "bug":
            raise AssertionError("an axis")
    return {"inputs": {"x": [1, 3]}, "refusal": None}
