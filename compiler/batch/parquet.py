"""Sources of rows in Parquet files, which are read a piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from compiler.batch.arrow import parquet, pyarrow
from compiler.batch.lists import Column, checked_type, column_of
from compiler.batch.rows import Array, Chunk, Reading, rows_at_once
from compiler.batch.stored import column_missing
from compiler.errors import Error
from compiler.ir import dtypes

__all__ = ["Parquet"]

_BUFFER = 1 << 20
"""The bytes that pyarrow reads of a column at once. By default it reads the columns of a row group as a whole, and
keeps all bytes that it has read."""


class Parquet:
    """A Parquet file. Each input has a column of numbers, strings or lists."""

    def __init__(self, path: Path, reading: Reading) -> None:
        self.path, self._inputs = path, list(reading.inputs)
        with self._opened() as file:
            schema, self.count = file.schema_arrow, int(file.metadata.num_rows)
            self._groups = [int(file.metadata.row_group(at).num_rows) for at in range(file.num_row_groups)]
        for value in self._inputs:
            if value.column not in schema.names:
                raise column_missing(path, value, list(schema.names))
            if schema.names.count(value.column) > 1:
                raise Error(f"{path}: two columns have the name {value.column!r}")
            if value.free > 1:
                advice = "fix sizes when you compile (--dim)"
                raise Error(f"a row of the input {value.name!r} is {value}, and has several unknown sizes: {advice}")
            try:
                checked_type(
                    value, schema.field(value.column).type, f"{path}: the column {value.column!r}", reading.cast
                )
            except ValueError as error:
                raise Error(str(error)) from None
        bytes_of_row = sum(value.known * dtypes.numpy_dtype(value.dtype).itemsize for value in self._inputs)
        self._step = rows_at_once(bytes_of_row)

    def read(self, first: int) -> Iterator[Chunk]:
        """The rows from `first` on."""
        group, at = 0, 0
        while group < len(self._groups) and at + self._groups[group] <= first:
            at += self._groups[group]
            group += 1
        columns = [*dict.fromkeys(value.column for value in self._inputs)]
        options = {"row_groups": range(group, len(self._groups)), "columns": columns, "use_threads": False}
        with self._opened() as file:
            pieces = iter(file.iter_batches(self._step, **options))
            while (piece := self._next(pieces)) is not None:
                skipped = min(max(first - at, 0), piece.num_rows)
                yield from self._chunks(piece.slice(skipped), at + skipped)
                at += piece.num_rows

    def _opened(self) -> Any:
        try:
            return parquet().ParquetFile(
                self.path, buffer_size=_BUFFER, pre_buffer=False, page_checksum_verification=True
            )
        except pyarrow().ArrowException as error:
            raise Error(f"cannot read {self.path}: {error}") from error

    def _next(self, pieces: Iterator[Any]) -> Any:
        try:
            return next(pieces, None)
        except (pyarrow().ArrowException, OSError) as error:
            raise Error(f"cannot read {self.path}: {error}") from error

    def _chunks(self, piece: Any, first: int) -> Iterator[Chunk]:
        """The rows of a piece. Rows of different sizes are in different chunks."""
        if piece.num_rows == 0:
            return
        columns = [column_of(value, piece.column(value.column)) for value in self._inputs]
        bad = {row: reason for column in reversed(columns) for row, reason in column.bad.items()}
        good = np.setdiff1d(np.arange(piece.num_rows), np.array([*bad], np.int64))
        left = sorted(bad)
        for rows in _runs(good, columns):
            before = [row for row in left if row < rows[-1]]
            left = left[len(before) :]
            arrays = {column.value.name: column.take(rows) for column in columns}
            yield Chunk(first + rows, arrays, {first + row: bad[row] for row in before})
        if left:
            yield Chunk(np.arange(0), {}, {first + row: bad[row] for row in left})


def _runs(rows: Array, columns: list[Column]) -> list[Array]:
    """The rows, cut where the number of elements of a row changes."""
    if len(rows) == 0:
        return []
    changes = np.zeros(len(rows) - 1, bool)
    for column in columns:
        changes |= np.diff(column.sizes[rows]) != 0
    return np.split(rows, np.flatnonzero(changes) + 1)
