"""The rounding errors of a model's plan and of onnxruntime, against the model in double precision."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import compiler
from compiler.accuracy.precision import Errors, errors_of, in_double_precision, run_exactly, together
from compiler.accuracy.reference import Reference
from compiler.errors import Error
from compiler.pipeline import compile_stored
from compiler.zoo.shapes import alike, pinned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compiler.processes.child import Channel
    from compiler.zoo.task_arguments import Measure

__all__ = ["measure"]


def measure(asked: Measure, channel: Channel) -> dict[str, Any] | None:
    """The worst errors of all cases as JSON data; `None` if a case has none, because the model is quantized.

    Raises:
        CompileError, InputError, RunError: the model is refused, or its plan cannot run a case.
        ReferenceFailed: onnxruntime refuses the model, or cannot run it.
    """
    if asked.entry.unfetched:
        raise Error(asked.entry.unfetched)
    channel.phase("load the model in onnxruntime")
    reference = Reference(asked.entry.path)
    measured: list[Errors] = []
    for cases in alike(asked.entry.cases, asked.entry.inputs):
        found = _of_cases(asked, reference, cases, channel)
        if found is None:
            return None
        measured += found
    worst = together(measured)
    return None if worst is None else asdict(worst)


def _of_cases(asked: Measure, reference: Reference, cases: Sequence[Path], channel: Channel) -> list[Errors] | None:
    """The errors of cases with the same shapes; `None` if one has none."""
    entry, measured = asked.entry, list[Errors]()
    channel.phase("compile")
    model = pinned(entry.path, entry.inputs(cases[0]))
    options = compiler.Options(**asked.compiling.options)
    session = compiler.load(compile_stored(model, options), threads=asked.threads)
    channel.phase("compile in double precision")
    double = in_double_precision(model, asked.threads, asked.compiling.lower_3d)
    for case in cases:
        inputs = entry.inputs(case)
        channel.phase(f"run: {case.stem}")
        found = session.run(inputs)
        channel.phase(f"run in double precision: {case.stem}")
        exact = run_exactly(double, inputs)
        channel.phase(f"run in onnxruntime: {case.stem}")
        each = None if exact is None else errors_of(exact, found, reference.run(inputs))
        if each is None:
            return None
        measured.append(each)
    return measured
