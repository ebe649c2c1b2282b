"""Tables and lines on the placement of steps on a GPU."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from compiler.cli.output import console, megabytes, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.runtime.steps import PlacedStep

__all__ = ["show_any_gpu", "show_missing", "show_placement"]


def show_placement(device: str, steps: Sequence[PlacedStep]) -> None:
    """Print where the steps of every op run, then the steps without a kernel on the device."""
    places = Counter((step.op, step.host) for step in steps)
    where = {None: device, "nature": "host: such ops belong there", "no_kernel": "host: the device has no kernel"}
    rows = [(op, str(count), where[host]) for (op, host), count in places.most_common()]
    table(("plan op", ">steps", "where"), rows)
    for step in steps:
        if step.host == "no_kernel":
            console.print(
                f"{step.op} from {step.origin} runs on the host: {_moved(step.bytes)} there and back", style="red"
            )
    show_missing(device, steps)


def show_any_gpu(device: str) -> None:
    """Print that the placement holds for every GPU, if the device is one by its number."""
    if ":" in device:
        console.print(f"the same holds for every GPU: the command does not look whether {device} is present")


def show_missing(device: str, steps: Sequence[PlacedStep]) -> None:
    """Print the number of steps without a kernel on the device, if any, and the data that moves for them."""
    missing = [step for step in steps if step.host == "no_kernel"]
    if missing:
        ops = ", ".join(f"{count} {op}" for op, count in Counter(step.op for step in missing).most_common())
        steps_of, falls = f"{len(missing)} step{'s' * (len(missing) > 1)}", "fall" if len(missing) > 1 else "falls"
        known = None if any(step.bytes is None for step in missing) else sum(step.bytes or 0 for step in missing)
        sentence = f"{device} has no kernel for {steps_of}, which {falls} back to the CPU: {ops}"
        console.print(f"{sentence}; {_moved(known)} there and back")


def _moved(count: int | None) -> str:
    return "data of unknown size moves" if count is None else f"{megabytes(count)} move"
