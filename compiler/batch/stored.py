"""Sources of rows in .npz and .safetensors files: the first axis of each array holds the rows."""

from __future__ import annotations

import json
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from compiler.array_files import SAFETENSORS_DTYPES, from_saved
from compiler.batch.declared import Value
from compiler.batch.rows import Array, Chunk, Reading, converted, refuse_dtype, rows_at_once
from compiler.batch.settings import SettingError
from compiler.errors import Error, did_you_mean
from compiler.ir import dtypes

__all__ = ["Npz", "Safetensors", "column_missing"]

_PIECE = 1 << 20
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError)
"""What zipfile raises for damaged members, and for those of an unknown compression."""


def column_missing(path: Path, value: Value, known: list[str]) -> Error:
    """The error for a file without the column of an input. It lists the columns that the file has."""
    column = value.column
    guess = did_you_mean(column, known)
    listed = f"its columns are {', '.join(known)}" if known else "it has no columns"
    problem = f"{path}: there is no column {column!r}: {guess + ' ' if guess else ''}{listed}"
    return SettingError(problem, "; map columns to inputs", "columns", value.name)


class _Stored(ABC):
    """A file of arrays. A subclass knows the shapes and dtypes, and reads the rows of an array in order."""

    def __init__(self, path: Path, reading: Reading, found: dict[str, tuple[tuple[int, ...], str]]) -> None:
        self.path, self._inputs = path, list(reading.inputs)
        counts = {}
        for value in self._inputs:
            if value.column not in found:
                raise column_missing(path, value, list(found))
            shape, dtype = found[value.column]
            place = f"{path}: the array {value.column!r}"
            refuse_dtype(value, dtype, place, reading.cast)
            if not shape or not value.takes(shape[1:]):
                raise Error(f"{place} has the shape {list(shape)}, and a row of the input {value.name!r} is {value}")
            counts[value.column] = shape[0]
        if len({*counts.values()}) > 1:
            listing = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise Error(f"{path}: the arrays have different numbers of rows: {listing}")
        self.count = next(iter(counts.values()))
        sizes = (_bytes_of_row(*found[value.column]) for value in self._inputs)
        self._step = rows_at_once(sum(sizes))

    def read(self, first: int) -> Iterator[Chunk]:
        """The rows from `first` on."""
        with ExitStack() as stack:
            readers = {value.name: self._open(stack, value.column, first) for value in self._inputs}
            while first < self.count:
                rows = np.arange(first, min(first + self._step, self.count))
                yield _chunk(rows, [(value, readers[value.name].take(len(rows))) for value in self._inputs])
                first += len(rows)

    @abstractmethod
    def _open(self, stack: ExitStack, column: str, first: int) -> _Rows:
        """Open an array for reading from the row `first` on. `stack` closes the file."""


class Npz(_Stored):
    """An .npz file. It may be compressed."""

    def __init__(self, path: Path, reading: Reading) -> None:
        wanted = {value.column for value in reading.inputs}
        found: dict[str, tuple[tuple[int, ...], str]] = {}
        try:
            with zipfile.ZipFile(path) as archive:
                for member in (each for each in archive.namelist() if each.endswith(".npy")):
                    name = member.removesuffix(".npy")
                    found[name] = ((), "")
                    if name in wanted:
                        with archive.open(member) as file:
                            shape, _, stored = _header(file)
                        found[name] = shape, _logical(stored)
        except (*_DAMAGED, ValueError, TypeError) as error:
            raise Error(f"cannot read {path}: {error}") from error
        super().__init__(path, reading, found)

    def _open(self, stack: ExitStack, column: str, first: int) -> _Rows:
        archive = stack.enter_context(zipfile.ZipFile(self.path))
        file = stack.enter_context(archive.open(f"{column}.npy"))
        shape, is_fortran, dtype = _header(file)
        if is_fortran and len(shape) > 1:
            raise Error(f"{self.path}: the array {column!r} has Fortran's order, whose rows are scattered: save a copy")
        return _Rows(self.path, file, shape[1:], dtype, first)


class Safetensors(_Stored):
    """A .safetensors file."""

    def __init__(self, path: Path, reading: Reading) -> None:
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="numpy"):  # checks the header, and the places of the tensors
                pass
        except SafetensorError as error:
            raise Error(f"cannot read {path}: {error}") from error
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            tensors: dict[str, Any] = json.loads(file.read(length))
        tensors.pop("__metadata__", None)
        found = {
            name: (tuple(each["shape"]), SAFETENSORS_DTYPES.get(each["dtype"], each["dtype"]))
            for name, each in tensors.items()
        }
        self._places = {name: 8 + length + each["data_offsets"][0] for name, each in tensors.items()}
        self._found = found
        super().__init__(path, reading, found)

    def _open(self, stack: ExitStack, column: str, first: int) -> _Rows:
        file = stack.enter_context(self.path.open("rb"))
        shape, name = self._found[column]
        dtype = dtypes.numpy_dtype(name)
        file.seek(self._places[column] + first * _bytes_of_row(shape, name))
        return _Rows(self.path, file, shape[1:], dtype, 0)


class _Rows:
    """The rows of one array, read from a file in order."""

    def __init__(self, path: Path, file: IO[bytes], shape: tuple[int, ...], dtype: np.dtype[Any], skip: int) -> None:
        self._path, self._file, self._shape, self._dtype = path, file, shape, dtype
        self._size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        left = skip * self._size
        while left:
            left -= len(self._read(min(left, _PIECE)))

    def take(self, count: int) -> Array:
        """The next rows, `[count, …]`."""
        data = self._read(count * self._size)
        array = np.frombuffer(data, self._dtype).reshape(count, *self._shape)
        return from_saved(array) if self._dtype.names or self._dtype.kind in "SU" else array

    def _read(self, size: int) -> bytes:
        try:
            data = self._file.read(size)
        except _DAMAGED as error:
            raise Error(f"cannot read {self._path}: {error}") from error
        if len(data) != size:
            raise Error(f"cannot read {self._path}: the file ends early")
        return data


def _chunk(rows: Array, given: list[tuple[Value, Array]]) -> Chunk:
    """The rows that fit after the conversion, and the others."""
    arrays, fit, bad = {}, np.ones(len(rows), bool), dict[int, str]()
    for value, array in given:
        arrays[value.name], fits = converted(value, array)
        if fits is not None and not fits.all():
            reason = f"a number of {value.column!r} is outside the range of {value.dtype}"
            bad |= {int(row): reason for row in rows[fit & ~fits]}
            fit &= fits
    return Chunk(rows, arrays) if not bad else Chunk(rows[fit], {name: each[fit] for name, each in arrays.items()}, bad)


def _bytes_of_row(shape: tuple[int, ...], dtype: str) -> int:
    return int(np.prod(shape[1:], dtype=np.int64)) * dtypes.numpy_dtype(dtype).itemsize


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape, the order and the dtype of an .npy file. The elements follow."""
    version = np.lib.format.read_magic(file)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if reader is None:
        raise ValueError(f"the version {version} of its .npy format is unknown")
    shape, is_fortran, dtype = reader(file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return shape, is_fortran, dtype


def _logical(dtype: np.dtype[Any]) -> str:
    """The logical type of the elements of a stored dtype."""
    return dtypes.name_of(from_saved(np.empty(0, dtype)))
