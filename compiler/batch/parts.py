"""The files of the output: each holds the outputs of some rows, with the file and the number of each row.

A part ends after a number of rows, after 64 MiB, or after a minute, always at the end of a batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler import array_files
from compiler.batch.arrow import parquet, pyarrow
from compiler.batch.declared import Value
from compiler.batch.rows import Array
from compiler.batch.settings import SettingError
from compiler.errors import Error
from compiler.ir import dtypes

if TYPE_CHECKING:
    from compiler.batch.batches import Batch
    from compiler.batch.files import Data

__all__ = ["Held", "check_outputs", "no_rows", "packed"]

FILE, ROW, FILES = "source_file", "source_row", "source_files"
"""The columns for the places of rows. In an .npz file, `source_file` holds positions in `source_files`."""

MOST_BYTES, MOST_SECONDS = 64 << 20, 60.0

_ARROW = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "string")},
    "bool": "bool_",
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
}
"""Dtype → the function of pyarrow for its type."""


class Held:
    """The outputs of the next part."""

    def __init__(self, first: int, most_rows: int) -> None:
        self.first, self._most = first, most_rows
        self.done: list[Batch] = []
        self._bytes, self._began = 0, time.monotonic()

    def add(self, done: Batch) -> None:
        """Add the outputs of a batch."""
        self.done.append(done)
        self._bytes += done.size

    @property
    def end(self) -> int:
        """The number of the row after the last one."""
        return self.done[-1].end if self.done else self.first

    @property
    def is_full(self) -> bool:
        """Whether the part ends here."""
        is_large = self.end - self.first >= self._most or self._bytes >= MOST_BYTES
        return is_large or time.monotonic() - self._began >= MOST_SECONDS

    @property
    def bad(self) -> dict[int, str]:
        """The bad rows, in order, with their reasons."""
        found = {row: reason for each in self.done for row, reason in each.bad.items()}
        return dict(sorted(found.items()))


def check_outputs(outputs: Sequence[Value], form: str) -> None:
    """Refuse outputs that the parts cannot hold.

    Raises:
        Error: the names or dtypes are the reason, or pyarrow is not installed.
    """
    if form == "parquet":
        parquet()
    for value in outputs:
        if value.name in (FILE, ROW, FILES):
            problem = f"the output {value.name!r} has the name of a column for the places of rows"
            raise SettingError(problem, ": choose other outputs", "outputs")
        if form == "parquet" and value.dtype not in _ARROW:
            raise Error(f"Parquet has no type for the output {value.name!r} of {value.dtype}: choose the format npz")


def packed(done: Sequence[Batch], outputs: Sequence[Value], data: Data, path: Path) -> bytes:
    """The bytes of a part.

    Raises:
        Error: an .npz file cannot hold the outputs, because the shapes of rows differ.
    """
    done = [each for each in done if len(each.rows)]
    rows = np.concatenate([each.rows for each in done]) if done else np.arange(0)
    groups = [[*same] for _, same in groupby(done, key=lambda each: [one.shape[1:] for one in each.arrays.values()])]
    found = {
        value.name: [np.concatenate([each.arrays[value.name] for each in group]) for group in groups]
        or [no_rows(value)]
        for value in outputs
    }
    files, owners, places = data.places(rows)
    if path.suffix == ".parquet":
        return _parquet(outputs, found, (files, owners, places))
    for name, pieces in found.items():
        if len({each.shape[1:] for each in pieces}) > 1:
            raise Error(f"the rows of the output {name!r} have different shapes: choose the format parquet")
    stated = {FILES: np.array(files, object), FILE: owners.astype(np.int64), ROW: places}
    return array_files.pack(stated | {name: np.concatenate(pieces) for name, pieces in found.items()}, path)


def no_rows(value: Value) -> Array:
    """An output of no rows."""
    return np.empty((0, *(size or 0 for size in value.shape)), dtypes.numpy_dtype(value.dtype))


def _parquet(outputs: Sequence[Value], found: dict[str, list[Array]], places: tuple[list[str], Array, Array]) -> bytes:
    arrow = pyarrow()
    files, owners, numbers = places
    named = arrow.DictionaryArray.from_arrays(arrow.array(owners.astype(np.int32)), arrow.array(files, arrow.string()))
    columns = {FILE: named, ROW: arrow.array(numbers.astype(np.int64))}
    for value in outputs:
        pieces = [_column(value, each) for each in found[value.name]]
        columns[value.name] = arrow.chunked_array(pieces, _type(value.dtype, value.shape))
    sink = arrow.BufferOutputStream()
    parquet().write_table(arrow.table(columns), sink, write_page_checksum=True)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _column(value: Value, array: Array) -> Any:
    """An output, `[rows, …]`, as lists: of fixed sizes along the axes whose sizes the plan knows."""
    arrow = pyarrow()
    column = arrow.array(array.reshape(-1), _type(value.dtype, ()))
    for axis in range(array.ndim - 1, 0, -1):
        size, kind = array.shape[axis], _type(value.dtype, value.shape[axis - 1 :])
        if value.shape[axis - 1]:
            column = arrow.FixedSizeListArray.from_arrays(column, type=kind)
        else:
            count = int(np.prod(array.shape[:axis], dtype=np.int64))
            offsets = arrow.array(np.arange(count + 1, dtype=np.int64) * size)
            column = arrow.LargeListArray.from_arrays(offsets, column)
    return column


def _type(dtype: str, shape: tuple[int | None, ...]) -> Any:
    """The type of a row. The format needs lists of any size for the size 0."""
    arrow = pyarrow()
    kind = getattr(arrow, _ARROW[dtype])()
    for size in reversed(shape):
        kind = arrow.list_(kind, size) if size else arrow.large_list(kind)
    return kind
