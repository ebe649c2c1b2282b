"""The tasks of the commands on a folder of models.

This module imports little, because the process that starts the tasks imports it. The process of a task imports the
compiler and onnxruntime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.processes.child import Channel
    from compiler.zoo.asked import Bench, Check, Measure, Profile, Time
    from compiler.zoo.outcome import Shapes

__all__ = ["MODULES", "bench", "check", "measure", "profile", "time"]

MODULES = ("compiler.zoo.check", "compiler.zoo.measure", "compiler.zoo.warm")
"""The modules that most tasks import. They start no threads, unlike onnxruntime, which each process imports itself."""


def check(asked: Check, channel: Channel) -> dict[Shapes, dict[str, Any]]:
    """See `compiler.zoo.check.check`."""
    from compiler.zoo.check import check

    return check(asked, channel)


def measure(asked: Measure, channel: Channel) -> dict[str, Any] | None:
    """See `compiler.zoo.measure.measure`."""
    from compiler.zoo.measure import measure

    return measure(asked, channel)


def time(asked: Time, channel: Channel) -> dict[str, float]:
    """See `compiler.zoo.timing.time`."""
    from compiler.zoo.timing import time

    return time(asked, channel)


def bench(asked: Bench, channel: Channel) -> dict[str, Any]:
    """See `compiler.zoo.benching.bench`."""
    from compiler.zoo.benching import bench

    return bench(asked, channel)


def profile(asked: Profile, channel: Channel) -> dict[str, Any]:
    """See `compiler.zoo.profile.profile`."""
    from compiler.zoo.profile import profile

    return profile(asked, channel)
