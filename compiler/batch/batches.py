"""Rows in batches, and their runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from compiler.batch.rows import Array, Chunk
from compiler.errors import Error, InputError, RunError

__all__ = ["Batch", "Runner", "Work", "batches", "sound"]


@dataclass(frozen=True)
class Batch:
    """Rows of equal shapes, and their inputs or their outputs, `[rows, …]` by name.

    `bad` holds the bad rows before the row `end`, with the reasons. The next batch begins with this row. If several
    rows ran and all of them are bad, `failed` is the error of the first run.
    """

    rows: Array
    arrays: dict[str, Array]
    bad: dict[int, str]
    end: int
    failed: Error | None = None

    @property
    def size(self) -> int:
        """The bytes of the arrays."""
        return sum(each.nbytes for each in self.arrays.values())


def batches(chunks: Iterator[Chunk], size: int, count: int) -> Iterator[Batch]:
    """Batches of `size` rows. A batch is smaller if the next row has another shape, or if it is the last one.

    The batches after a row depend only on the rows after it. `count` is the number of all rows.
    """
    held: list[Chunk] = []
    bad: dict[int, str] = {}
    for chunk in chunks:
        bad |= chunk.bad
        if len(chunk.rows) == 0:
            if not held and bad:
                yield Batch(np.arange(0), {}, bad, max(bad) + 1)
                bad = {}
            continue
        if held and _shapes(held[0]) != _shapes(chunk):
            yield _batch(held, bad)
            held = []
        held.append(chunk)
        while sum(len(each.rows) for each in held) >= size:
            whole, rest = _cut(held, size)
            yield _batch(whole, bad)
            held = rest
    if held:
        yield _batch(held, bad)
    if bad:
        yield Batch(np.arange(0), {}, bad, count)


@dataclass(frozen=True)
class Work:
    """The work of a batch: the outputs to compute. `size` is the number of rows of a run, which the plan may fix."""

    size: int
    is_fixed: bool
    outputs: list[str]


class Runner:
    """Runs batches. If a plan fixes the batch size, a smaller batch repeats its last row, and drops the results."""

    def __init__(self, session: Any, work: Work) -> None:
        self._session, self._work = session, work

    def run(self, batch: Batch) -> Batch:
        """The outputs of a batch. A row for which a step fails is a bad row.

        Raises:
            Error: an output has not one element for each row along its first axis.
        """
        bad = dict(batch.bad)
        errors: list[Error] = []
        pieces = list(self._pieces(batch.rows, batch.arrays, bad, errors)) if len(batch.rows) else []
        rows = np.concatenate([rows for rows, _ in pieces]) if pieces else np.arange(0)
        names = self._work.outputs if pieces else []
        outputs = {name: _joined(name, [found[name] for _, found in pieces]) for name in names}
        return Batch(rows, outputs, bad, batch.end, errors[0] if len(batch.rows) > 1 and not pieces else None)

    def _pieces(
        self, rows: Array, arrays: dict[str, Array], bad: dict[int, str], errors: list[Error]
    ) -> Iterator[tuple[Array, dict[str, Array]]]:
        """The outputs of rows. If their run fails, each half runs alone. The errors are added to `errors`."""
        try:
            outputs = self._outputs_of(arrays, len(rows))
        except (RunError, InputError) as error:
            errors.append(error)
            if len(rows) == 1:
                bad[int(rows[0])] = str(error)
                return
            for half in (slice(None, len(rows) // 2), slice(len(rows) // 2, None)):
                part = {name: each[half] for name, each in arrays.items()}
                yield from self._pieces(rows[half], part, bad, errors)
        else:
            yield rows, outputs

    def _outputs_of(self, arrays: dict[str, Array], count: int) -> dict[str, Array]:
        ran = self._work.size if self._work.is_fixed else count
        if ran > count:
            arrays = {name: np.concatenate([each, each[-1:].repeat(ran - count, 0)]) for name, each in arrays.items()}
        found = self._session.run(arrays, self._work.outputs)
        for name, each in found.items():
            if not isinstance(each, np.ndarray) or each.ndim == 0 or len(each) != ran:
                stated = f"the shape {list(each.shape)}" if isinstance(each, np.ndarray) else "no shape"
                raise Error(f"the output {name!r} of {ran} rows has {stated}: its first axis is not the rows")
        return {name: each[:count] for name, each in found.items()}


def sound(results: Iterable[Batch]) -> Iterator[Batch]:
    """The same outputs of batches, in order.

    Raises:
        RunError: the first batch with rows fails for each of them, so that the rows are not the reason.
    """
    is_sound = False
    for done in results:
        if done.failed is not None and not is_sound:
            raise done.failed
        is_sound = is_sound or len(done.rows) > 0
        yield done


def _shapes(chunk: Chunk) -> list[tuple[int, ...]]:
    return [each.shape[1:] for each in chunk.arrays.values()]


def _cut(held: list[Chunk], size: int) -> tuple[list[Chunk], list[Chunk]]:
    """The first `size` rows, and the others."""
    whole, last = held[:-1], held[-1]
    count = size - sum(len(each.rows) for each in whole)
    head, tail = (
        Chunk(last.rows[part], {name: each[part] for name, each in last.arrays.items()})
        for part in (slice(None, count), slice(count, None))
    )
    return [*whole, head], [tail] if len(tail.rows) else []


def _batch(held: list[Chunk], bad: dict[int, str]) -> Batch:
    """The batch of the rows. It takes the bad rows before its last row out of `bad`."""
    rows = np.concatenate([each.rows for each in held]) if len(held) > 1 else held[0].rows
    names = held[0].arrays
    arrays = {name: _joined(name, [each.arrays[name] for each in held]) for name in names}
    end = int(rows[-1]) + 1
    return Batch(rows, arrays, {row: bad.pop(row) for row in sorted(row for row in bad if row < end)}, end)


def _joined(name: str, pieces: list[Array]) -> Array:
    if len(pieces) == 1:
        return pieces[0]
    if any(one.shape[1:] != other.shape[1:] for one, other in pairwise(pieces)):
        raise Error(f"{name!r} has rows of different shapes in one batch")
    return np.concatenate(pieces)
