"""The largest number of rows of a run whose values fit into some memory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.batch.declared import batch_size, inputs_of_rows
from compiler.errors import Error, InputError, RunError
from compiler.ir import dtypes
from compiler.runtime.session import load
from compiler.validate import validate_mapping, validate_whole_number

if TYPE_CHECKING:
    from compiler.batch.rows import Array
    from compiler.plan import Plan
    from compiler.runtime.session import Session

__all__ = ["largest_batch"]


def largest_batch(
    plan: Plan | str | os.PathLike[str],
    memory: int,
    *,
    sample: Mapping[str, Any] | None = None,
    most: int = 4096,
    device: str = "cpu",
    threads: int | None = None,
) -> int:
    """The largest power of 2, up to `most`, of rows of a run whose values take at most `memory` bytes.

    The function runs the plan with 1, 2, 4, … rows and measures the inputs, the values between the steps and the
    outputs. Constants and the temporary buffers of kernels need more memory. The rows are copies of the first one of
    `sample`, which holds an array `[rows, …]` for each input. By default, they are zeros. If the plan fixes the number
    of rows, the result is this number.

    Raises:
        Error: one run of the smallest size takes more memory, an input has no axis for the rows, or without `sample` an
            input has an unknown size (InputError).
        InputError, RunError: the sample does not fit the inputs, or a step fails.
        PlanError, DeviceError, OSError, TypeError, ValueError: as `compiler.load`.
    """
    validate_whole_number("memory", memory, 1)
    validate_whole_number("most", most, 1)
    session = load(plan, device, threads, max_memory=memory)
    given = {} if sample is None else sample
    validate_mapping("sample", given, "a dict of arrays by input")
    row = _zeros(session) if sample is None else {name: np.asarray(each)[:1] for name, each in given.items()}
    fixed, is_fixed = batch_size(session.inputs, None)
    rows = fixed if is_fixed else 1
    taken = _bytes(session, row, rows)
    if taken > memory:
        raise Error(f"a run of {rows} row{'s' * (rows != 1)} takes {taken:,} bytes, more than {memory:,}")
    while not is_fixed and 2 * rows <= most:
        try:
            taken = _bytes(session, row, 2 * rows)
        except RunError:  # the same row ran before: the reason is `max_memory`
            break
        if taken > memory:
            break
        rows *= 2
    return rows


def _bytes(session: Session, row: Mapping[str, Array], rows: int) -> int:
    """The peak memory of the values of a run."""
    inputs = {name: np.repeat(each, rows, 0) for name, each in row.items()}
    steps = session.profile(inputs, 1)
    return sum(each.nbytes for each in inputs.values()) + max((step.alive_bytes for step in steps), default=0)


def _zeros(session: Session) -> dict[str, Array]:
    """One row of zeros, or of empty strings."""
    found = {}
    for value in inputs_of_rows(session.inputs, {}):
        shape = [size for size in value.shape if size is not None]
        if value.free:
            message = f"input {value.name!r}: a row is {value}, and a size is unknown: give a `sample`"
            raise InputError(value.name, str(value), "no sample", message)
        found[value.name] = np.full((1, *shape), "" if value.dtype == "string" else 0, dtypes.numpy_dtype(value.dtype))
    return found
