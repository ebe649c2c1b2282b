"""The table of `candlec inspect --prepared --device cuda`: each step on a GPU, and its estimated time."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from compiler.bench.expectation import GPUS
from compiler.cli.output import Cell, console, megabytes, table
from compiler.cli.tables.prepared import CHOSEN, NO_ALTERNATIVES
from compiler.cli.tables.profile import HOSTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.bench.expectation import GpuStep

__all__ = ["expectation_data", "show_expectation", "show_gpu_alternatives"]


ALTERNATIVES_LEGEND = """\
µs on H100: estimated from measurements of float32 on an H100, without a bias or an epilogue
limit: why the runtime does not choose a form, whatever its time. No measurement supports the estimate of its time."""


def show_expectation(steps: Sequence[GpuStep]) -> None:
    """Print the steps of a run and their totals."""
    times = [f">µs on {gpu.name}" for gpu in GPUS]
    columns = (">step", "op", "kernels and library calls", "precision", "layout", ">launches", ">MB", *times)
    ran = [step for step in steps if step.calls]
    table(columns, [_row(step) for step in ran])
    moved = sum(step.uploaded for step in ran), sum(step.downloaded for step in ran)
    launches, waits = sum(step.launches for step in ran), sum(step.waits for step in ran)
    to_gpu, to_host = map(megabytes, moved)
    counts = f"{launches} launch{'es' * (launches != 1)}, {waits} wait{'s' * (waits != 1)}"
    console.print(f"{counts}, {to_gpu} to the GPU and {to_host} back a run", soft_wrap=True)
    for gpu in GPUS:
        least = 1e6 * sum(gpu.seconds(step) for step in ran)
        console.print(f"{gpu.name}: about {least:.3g} µs at its published limits ({gpu.source})", soft_wrap=True)
    legend = (
        "An estimate, not a measurement: launches and waits take additional time. The times assume that every tensor "
        "crosses the GPU's memory once in each step; small tensors may stay in its L2 cache and take less time."
    )
    console.print(legend, style="dim", soft_wrap=True)


def show_gpu_alternatives(steps: Sequence[GpuStep]) -> None:
    """Print the forms of steps that have several, with their expected times, the fastest first."""
    columns = (">step", "op", "form", ">µs on H100", "", "limit")
    rows: list[list[Cell]] = []
    for step in steps:
        for each in sorted(step.alternatives, key=lambda form: form.microseconds):
            chosen, time = CHOSEN if each.chosen else "", f"{each.microseconds:.1f}"
            rows.append([str(step.index), "  " * step.depth + step.op, each.form, time, chosen, each.limit or ""])
    if not rows:
        console.print(NO_ALTERNATIVES, soft_wrap=True)
        return
    table(columns, rows)
    console.print(ALTERNATIVES_LEGEND, style="dim", soft_wrap=True)


def expectation_data(steps: Sequence[GpuStep]) -> dict[str, Any]:
    """The steps as JSON data."""
    return {
        "steps": [{**asdict(step), "launches": step.launches, "precision": step.precision} for step in steps],
        "least_seconds": {gpu.name: sum(gpu.seconds(step) for step in steps if step.calls) for gpu in GPUS},
        "limits": [asdict(gpu) for gpu in GPUS],
    }


def _row(step: GpuStep) -> list[Cell]:
    products = [f"{product}{_times(product.calls)}" for product in step.products]
    kernels = [f"{name}{_times(count)}" for name, count in step.kernels.items()]
    copies = ["copy from the host"] * bool(step.uploaded) + ["copy to the host"] * bool(step.downloaded)
    how = ", ".join([*products, *kernels, *copies]) or (HOSTED[step.host] if step.host else "")
    number = f"{'+' if step.added else ''}{step.index}"
    moved = f"{step.bytes / 1e6:.2f}" if step.bytes else ""
    least = [f"{1e6 * gpu.seconds(step):.2f}" for gpu in GPUS]
    return [
        number,
        "  " * step.depth + step.op,
        how,
        step.precision,
        step.layout or "",
        str(step.launches or ""),
        moved,
        *least,
    ]


def _times(count: int) -> str:
    return f" × {count}" if count > 1 else ""
