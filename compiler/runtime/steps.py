"""The steps of a plan: where each runs, and how long it takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from compiler import _runtime
from compiler.errors import DeviceError

if TYPE_CHECKING:
    from compiler.plan import Plan

__all__ = ["Peaks", "PlacedStep", "StepTime", "placed_steps", "refuse_missing"]


def placed_steps(plan: Plan) -> list[PlacedStep]:
    """Where every step of a plan would run on a GPU. No GPU is needed."""
    return [PlacedStep(**item) for item in json.loads(_runtime.placed_steps(plan.data))]


@dataclass(frozen=True)
class StepTime:
    """The time of one step, summed over all runs, and its work.

    `operations` counts the multiplications and additions of its op's formula. It is 0 for an op whose time depends only
    on memory. `bytes` counts the bytes that it reads and writes. Both are `None` if the op does not report them, or a
    size is unknown.

    `alive_bytes` is the peak memory of the run's values during the step, without constants. The run measures it, unlike
    `PreparedStep.alive_bytes`.

    `kernel`, `program` and `packed_bytes` have the same meaning as in `PreparedStep`, and `host` as in `PlacedStep`. On
    a GPU, a profile waits for each step, unlike a run. A step `Transfer` moves values to the GPU or back.

    Steps of the main block have depth 0. If a step of depth `n` runs a nested block, the steps of this block have depth
    `n + 1`, and their time is part of the time of that step.
    """

    op: str
    origin: str
    depth: int
    calls: int
    seconds: float
    operations: int | None = None
    bytes: int | None = None
    alive_bytes: int = 0
    kernel: str | None = None
    program: str | None = None
    packed_bytes: int = 0
    host: Literal["nature", "no_kernel"] | None = None


@dataclass(frozen=True)
class PlacedStep:
    """The place where a step runs: the session's device, or the host.

    On the host, `host` is "nature" for ops that belong there (control flow, strings, arithmetic on sizes), and
    "no_kernel" for ops that the device lacks. `bytes` counts the data that the runtime copies because the kernel is
    missing. It is `None` if a size is unknown before a run.
    """

    op: str
    origin: str
    host: Literal["nature", "no_kernel"] | None = None
    bytes: int | None = 0


def refuse_missing(device: str, steps: Sequence[PlacedStep]) -> None:
    """Refuse steps for which the device has no kernel.

    Raises:
        DeviceError: there is such a step.
    """
    missing = [step for step in steps if step.host == "no_kernel"]
    if missing:
        others = len(missing) - 1
        raise DeviceError(
            f'device "{device}": it has no kernel for {missing[0].op} from {missing[0].origin}'
            + (f", nor for {others} other step{'s' * (others > 1)}" if others else "")
            + f"; without strict_device, {'they fall' if others else 'it falls'} back to the CPU"
        )


@dataclass(frozen=True)
class Peaks:
    """The peak speed of the processor: operations per second, and bytes of memory per second."""

    operations: float
    bytes: float
