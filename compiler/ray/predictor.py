"""A plan as a class for `ray.data.Dataset.map_batches`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from compiler.batch.batches import Batch, Runner, Work
from compiler.batch.declared import batch_size, inputs_of_rows, outputs_of_rows
from compiler.batch.parts import no_rows
from compiler.batch.settings import validate_columns
from compiler.errors import Error, did_you_mean
from compiler.ray.columns import column_of
from compiler.ray.packages import placed
from compiler.runtime.session import Session, load
from compiler.validate import validate_instance, validate_list

if TYPE_CHECKING:
    from compiler.batch.rows import Array
    from compiler.plan import Plan

__all__ = ["Predictor"]


class Predictor:
    """Runs a plan over the batches of a dataset. Each actor of `map_batches` holds one session.

    `plan` is a `Plan`, or a path that every node of the cluster has. An input takes the column with its own name, or
    the one that `columns` names. `outputs` names the outputs to compute, by default all. The result holds the outputs
    and the columns of `keep`. With `cast`, the predictor converts numbers to the input's dtype even if this rounds
    them.

    In an actor, `threads` is by default its `num_cpus`, and `device` is "cuda" if it has a GPU, otherwise "cpu".
    `threads`, `device` and `max_memory` have the same meaning as in `compiler.load`.

    Raises:
        Error: an input or output has no axis for the rows, or a name is unknown or appears twice.
        PlanError, DeviceError, OSError, TypeError, ValueError: as `compiler.load`.
    """

    def __init__(
        self,
        plan: Plan | str | os.PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        outputs: Sequence[str] | None = None,
        keep: Sequence[str] = (),
        cast: bool = False,
        device: str | None = None,
        threads: int | None = None,
        max_memory: int | None = None,
    ) -> None:
        chosen = {} if columns is None else columns
        validate_columns(chosen)
        validate_list("keep", keep)
        validate_instance("cast", cast, bool, "True or False")
        if outputs is not None:
            validate_list("outputs", outputs)
        self.session: Session = load(plan, *placed(device, threads), max_memory=max_memory)
        self._inputs = inputs_of_rows(self.session.inputs, chosen)
        self._outputs = outputs_of_rows(self.session.outputs, outputs, self.session.inputs)
        self._keep, self._cast = tuple(keep), cast
        size, self._is_fixed = batch_size(self.session.inputs, None)
        self._size = size if self._is_fixed else None
        names = [value.name for value in self._outputs]
        self._runner = Runner(self.session, Work(size, self._is_fixed, names))
        for name in self._keep:
            if name in names:
                raise Error(f"the column {name!r} has the name of an output: rename it, or choose other outputs")

    def __call__(self, batch: Mapping[str, Array]) -> dict[str, Array]:
        """The kept columns and the outputs of a batch. Each array is `[rows, …]`.

        Raises:
            Error: a column is missing or unknown, or does not fit its input, or a step fails. For a bad row, the
                message gives its number in the batch, and its values of the columns of `keep`.
        """
        if not hasattr(batch, "keys"):
            given = f"a dict of arrays by column, found {type(batch).__name__}"
            raise TypeError(f'batch: expected {given}: map_batches(…, batch_format="numpy") passes such dicts')
        self._check_names(batch)
        kept = {name: np.asarray(batch[name]) for name in self._keep}
        arrays: dict[str, Array] = {}
        bad: dict[int, str] = {}
        for value in self._inputs:
            arrays[value.name], more = column_of(value, batch[value.column], self._cast)
            bad = more | bad
        count = len(next(iter(arrays.values())))
        for name, column in {**arrays, **kept}.items():
            if len(column) != count:
                raise Error(f"the columns have different numbers of rows: {count} and, of {name!r}, {len(column)}")
        if bad:
            raise self._error(bad, kept, count)
        return {**kept, **self._run(arrays, kept, count)}

    def _run(self, arrays: dict[str, Array], kept: dict[str, Array], count: int) -> dict[str, Array]:
        """The outputs of all rows. If the plan fixes the batch size, they run in batches of this size."""
        if count == 0:
            return {value.name: no_rows(value) for value in self._outputs}
        done = []
        for first in range(0, count, self._size or count):
            rows = np.arange(first, min(first + (self._size or count), count))
            part = {name: each[rows[0] : rows[-1] + 1] for name, each in arrays.items()}
            found = self._runner.run(Batch(rows, part, {}, int(rows[-1]) + 1))
            if found.bad:
                raise self._error(found.bad, kept, count)
            done.append(found.arrays)
        if len(done) == 1:
            return done[0]
        return {value.name: np.concatenate([each[value.name] for each in done]) for value in self._outputs}

    def _check_names(self, batch: Mapping[str, Array]) -> None:
        """Refuse a batch with other columns than those of the inputs and the kept ones."""
        wanted = [*(value.column for value in self._inputs), *self._keep]
        for name in wanted:
            if name not in batch:
                known = did_you_mean(name, batch) or f"the columns are {', '.join(batch)}"
                raise Error(f"there is no column {name!r}: {known}; `columns` names the columns of inputs")
        for name in batch:
            if name not in wanted:
                raise Error(f"the column {name!r} is no input: drop it, keep it (`keep`), or map it (`columns`)")

    def _error(self, bad: Mapping[int, str], kept: Mapping[str, Array], count: int) -> Error:
        """The error for bad rows, which names the first one."""
        row = min(bad)
        place = ", ".join(f"{name} = {column[row]}" for name, column in kept.items())
        others = f"; the batch has {len(bad)} bad rows" if len(bad) > 1 else ""
        return Error(f"row {row} of a batch of {count}{f' ({place})' if place else ''}: {bad[row]}{others}")
