"""The tasks of the commands on a folder of models.

This module imports little, because the process that starts the tasks imports it. The process of a task imports the
compiler and onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.processes.child import Channel
    from compiler.zoo.outcome import Shapes
    from compiler.zoo.task_arguments import Bench, Check, Measure, Profile, Time

__all__ = ["MODULES", "bench", "check", "measure", "profile", "time"]

MODULES = ("compiler.zoo.check_model", "compiler.zoo.measure_model", "compiler.zoo.warm")
"""The modules that most tasks import. They start no threads, unlike onnxruntime, which each process imports itself."""


def check(asked: Check, channel: Channel) -> dict[Shapes, dict[str, Any]]:
    """See `compiler.zoo.check_model.check`."""
    from compiler.zoo.check_model import check

    return check(asked, channel)


def measure(asked: Measure, channel: Channel) -> dict[str, Any] | None:
    """See `compiler.zoo.measure_model.measure`."""
    from compiler.zoo.measure_model import measure

    return measure(asked, channel)


def time(asked: Time, channel: Channel) -> dict[str, float]:
    """See `compiler.zoo.time_model.time`."""
    from compiler.zoo.time_model import time

    return time(asked, channel)


def bench(asked: Bench, channel: Channel) -> dict[str, Any]:
    """See `compiler.zoo.bench_model.bench`."""
    from compiler.zoo.bench_model import bench

    return bench(asked, channel)


def profile(asked: Profile, channel: Channel) -> dict[str, Any]:
    """See `compiler.zoo.profile_model.profile`."""
    from compiler.zoo.profile_model import profile

    return profile(asked, channel)
