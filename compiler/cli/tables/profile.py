"""The tables of `candlec run --profile`: time by op and step, and each step's share of the machine's peaks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from compiler.cli.output import console, megabytes, table
from compiler.cli.tables.prepared import form

if TYPE_CHECKING:
    from compiler.runtime.steps import Peaks, StepTime

__all__ = ["show_profile"]

SLOWEST = 15
HOSTED = {"nature": "on the host", "no_kernel": "on the host: the device has no kernel"}
SPEED = (">ms a run", ">share", ">GFLOP/s", ">GB/s", ">of peak")


def show_profile(steps: Sequence[StepTime], peaks: Peaks | None, runs: int) -> None:
    """Print the time by op, and the slowest steps."""
    total = sum(step.seconds for step in steps if not step.depth) or 1.0
    ops: dict[str, list[StepTime]] = {}
    for step in steps:
        ops.setdefault(step.op, []).append(step)
    slow_first = sorted(ops.items(), key=lambda each: -sum(step.seconds for step in each[1]))
    rows = [[op, str(len(group)), *speed(group, total, peaks, runs)] for op, group in slow_first]
    table(("op", ">steps", *SPEED), rows)
    slowest = sorted(steps, key=lambda step: -step.seconds)[:SLOWEST]
    rows = [["  " * step.depth + step.op, *speed([step], total, peaks, runs), *_place(step)] for step in slowest]
    table((f"the {len(slowest)} slowest steps", *SPEED, "kernel", "origin"), rows)
    moved = (
        sum(step.bytes or 0 for step in steps if step.op == "Transfer") // 2 // runs
    )  # a transfer counts both its reads and its writes
    if moved:
        console.print(f"{megabytes(moved)} per run move to the device and back")
    for step in steps:
        if step.host == "no_kernel" and step.calls:
            operands = f", on {megabytes(step.bytes // runs)} of operands" if step.bytes else ""
            console.print(
                f"{step.op} from {step.origin} runs on the host, because the device has no kernel{operands}",
                style="red",
            )
    if peaks:
        console.print(f"peaks: {1e-9 * peaks.operations:.0f} GFLOP/s, {1e-9 * peaks.bytes:.0f} GB/s", style="dim")


def speed(steps: Iterable[StepTime], total: float, peaks: Peaks | None, runs: int) -> list[str]:
    """Time and its share, operations and bytes per second, and the fraction of the time that the peaks need."""
    measured = [step for step in steps if step.bytes is not None and step.seconds]
    seconds = sum(step.seconds for step in steps)
    known = sum(step.seconds for step in measured)
    shares = [f"{1e3 * seconds / runs:.3f}", f"{seconds / total:.0%}"]
    if not known:
        return [*shares, "", "", ""]
    operations = sum(step.operations or 0 for step in measured)
    moved = sum(step.bytes or 0 for step in measured)
    speed = [f"{1e-9 * operations / known:.1f}" if operations else "", f"{1e-9 * moved / known:.1f}"]
    if peaks is None:
        return [*shares, *speed, ""]
    arithmetic, memory = operations / peaks.operations, moved / peaks.bytes
    bound = "arithmetic" if arithmetic >= memory else "memory"
    return [*shares, *speed, f"{max(arithmetic, memory) / known:.0%} {bound}"]


def _place(step: StepTime) -> list[str]:
    """The form and the origin of a step."""
    return [HOSTED[step.host] if step.host else form(step.kernel, step.program), step.origin]
