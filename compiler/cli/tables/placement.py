"""What is said of where steps run when the device is a GPU."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from compiler.cli.output import console, megabytes, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.runtime.session import PlacedStep

__all__ = ["show_missing", "show_placement"]


def show_placement(device: str, steps: Sequence[PlacedStep]) -> None:
    """Print where the steps of every op run, then those that the device has no kernel for."""
    places = Counter((step.op, step.host) for step in steps)
    where = {None: device, "nature": "host, where it belongs", "no_kernel": "host, for want of a kernel"}
    rows = [(op, str(count), where[host]) for (op, host), count in places.most_common()]
    table(("plan op", ">steps", "where"), rows)
    for step in steps:
        if step.host == "no_kernel":
            console.print(
                f"{step.op} from {step.origin} runs on the host: {_moved(step.bytes)} there and back", style="red"
            )
    show_missing(device, steps)


def show_missing(device: str, steps: Sequence[PlacedStep]) -> None:
    """Print how many steps the host does for want of a kernel of the device, if any, and what moves for them."""
    missing = [step for step in steps if step.host == "no_kernel"]
    if missing:
        ops = ", ".join(f"{count} {op}" for op, count in Counter(step.op for step in missing).most_common())
        steps_of = f"{len(missing)} step{'s' * (len(missing) > 1)}"
        known = None if any(step.bytes is None for step in missing) else sum(step.bytes or 0 for step in missing)
        console.print(
            f"{device} has no kernel for {steps_of}, which the host runs: {ops}; {_moved(known)} there and back"
        )


def _moved(count: int | None) -> str:
    return "what depends on the inputs' sizes goes" if count is None else f"{megabytes(count)} go"
