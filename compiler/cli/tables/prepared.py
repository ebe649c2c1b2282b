"""The table of `candlec inspect --prepared`: every step with its kernel, layouts and live values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.cli.output import Cell, console, megabytes, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.runtime.prepared import Alternative, Prepared, PreparedStep, PreparedValue

__all__ = ["form", "show_alternatives", "show_prepared"]

ADDED = "+"
"""Marks a step that is not in the plan."""
TAKEN = "*"
"""Marks a value whose storage the step reuses."""
BLOCKS = "▦"
"""Marks a value in blocks of channels."""

CHOSEN = "chosen"
NO_ALTERNATIVES = "no step has several forms"
PARTS = ("", ", the first alone", ", the second alone")
"""The suffix of an operator's name in the table: a form computes the whole step, or one of its two convolutions."""
ALTERNATIVES_LEGEND = """\
expected: the time of one image or of one product, in multiply-adds of a vector
in blocks: without the time of the conversions to blocks and back. Prepare counts these once for all steps."""
LEGEND = (
    f"{ADDED} added by prepare   {BLOCKS} in blocks of channels, otherwise in rows   "
    f"{TAKEN} storage that the step may reuse   alive: memory of values while the step runs, without constants"
)


def show_prepared(prepared: Prepared, way: str) -> None:
    """Print the steps and their total memory. `way` tells how to fix sizes; it is empty if all inputs have them."""
    columns = (">step", "op", "kernel", "takes", "gives", "dies", ">packed", ">alive")
    table(columns, [_row(step) for step in prepared.steps])
    console.print(LEGEND, style="dim", soft_wrap=True)
    packed, constants = megabytes(prepared.packed_bytes), megabytes(prepared.constant_bytes)
    level = f"{prepared.isa}, blocks of {prepared.block} channels"
    console.print(f"{level}; constants {constants}, packed {packed}", soft_wrap=True)
    known = megabytes(prepared.peak_bytes) if prepared.peak_bytes else ""
    line = f"peak memory of values: {known}"
    if prepared.unknown_steps:
        count = f"{prepared.unknown_steps} step{'s' * (prepared.unknown_steps > 1)}"
        line += f"{', ' if known else ''}unknown for {count} ({way or _unbounded(prepared.steps)})"
    elif not known:
        line += megabytes(0)
    console.print(line, soft_wrap=True)
    if prepared.state:
        _show_state(prepared)


def _show_state(prepared: Prepared) -> None:
    """Print how many values of the state change in place, which do not, and which steps read copies."""
    new = [pair.output for pair in prepared.state if not pair.in_place]
    line = f"state: {len(prepared.state) - len(new)} of {len(prepared.state)} values change in place"
    console.print(line + (f"; each run makes these anew: {', '.join(new)}" if new else ""), soft_wrap=True)
    ops = {step.index: step.op for step in prepared.steps if step.depth == 0 and not step.added}
    for pair in prepared.state:
        if pair.copies:
            steps = " and ".join(f"step {index}, {ops[index]}" for index in pair.copies)
            console.print(f"each run copies {pair.output} for {steps}", soft_wrap=True)


def _unbounded(steps: Sequence[PreparedStep]) -> str:
    """The first step whose memory is unknown although the inputs have fixed sizes."""
    first = next((step for step in steps if step.alive_bytes is None), None)
    return "" if first is None else f"step {first.index}, {first.op}, is the first that states no bound"


def show_alternatives(prepared: Prepared) -> None:
    """Print the forms of steps that have several, with their expected times, the fastest first.

    The forms of a step that computes two convolutions precede those of each of them.
    """
    columns = (">step", "op", "form", ">expected", "", "")
    rows: list[list[Cell]] = []
    for step in prepared.steps:
        for each in sorted(step.alternatives, key=lambda alternative: (_part(alternative), alternative.time)):
            chosen = CHOSEN if step.kernel == each.form and each.part is None else ""
            saving = "" if each.saving is None else f"blocks save {each.saving:,.0f}"
            time = f"{each.time:,.0f}"
            op = "  " * step.depth + step.op + PARTS[_part(each)]
            rows.append([str(step.index), op, each.form, time, chosen, saving])
    if not rows:
        console.print(NO_ALTERNATIVES, soft_wrap=True)
        return
    table(columns, rows)
    console.print(ALTERNATIVES_LEGEND, style="dim", soft_wrap=True)


def form(kernel: str | None, program: str | None) -> str:
    """The form of a step, such as `direct, in blocks; Relu`."""
    return "; ".join(part for part in (kernel, program) if part)


def _part(alternative: Alternative) -> int:
    """0 for a form of the whole step, otherwise the number of its convolution, from 1."""
    return 0 if alternative.part is None else alternative.part + 1


def _row(step: PreparedStep) -> list[Cell]:
    number = f"{ADDED if step.added else ''}{step.index}"
    packed = megabytes(step.packed_bytes) if step.packed_bytes else ""
    alive = "" if step.alive_bytes is None else megabytes(step.alive_bytes)
    names = [_names(step.inputs), _names(step.outputs), ", ".join(map(_short, step.dies))]
    return [number, "  " * step.depth + step.op, form(step.kernel, step.program), *names, packed, alive]


def _names(values: Sequence[PreparedValue | None]) -> str:
    """The numbers of the values, without constants."""
    return ", ".join(
        f"{_short(value.value)}{BLOCKS if value.layout == 'blocks' else ''}{TAKEN if value.taken else ''}"
        for value in values
        if value is not None and not value.constant
    )


def _short(name: str) -> str:
    """`%3:relu` → `%3`."""
    return name.partition(":")[0]
