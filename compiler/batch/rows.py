"""Rows of the data as arrays, and the sources that read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from compiler.batch.declared import Value
from compiler.errors import Error
from compiler.ir import dtypes

__all__ = ["CHUNK_BYTES", "Array", "Chunk", "Reading", "Source", "converted", "refuse_dtype", "rows_at_once"]

Array = np.ndarray[Any, Any]

CHUNK_BYTES, CHUNK_ROWS = 16 << 20, 16_384
"""About the most bytes, and the most rows, that a source reads at once."""

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class Chunk:
    """Some rows of a source, in order. The rows of the next chunk follow.

    `rows` holds the numbers of the rows that fit, and `arrays` their values for each input, of shape `[rows, …]`. `bad`
    holds the other rows with the reasons.
    """

    rows: Array
    arrays: dict[str, Array]
    bad: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reading:
    """How to read rows: the inputs that they are for, and the settings `cast` and `scale`."""

    inputs: Sequence[Value]
    cast: bool = False
    scale: float | None = None


class Source(Protocol):
    """A file of rows. `count` is the number of its rows."""

    path: Path
    count: int

    def read(self, first: int) -> Iterator[Chunk]:
        """The rows from `first` on."""


def rows_at_once(bytes_of_row: int) -> int:
    """The number of rows that a source reads at once."""
    return max(1, min(CHUNK_ROWS, CHUNK_BYTES // max(bytes_of_row, 1)))


def refuse_dtype(value: Value, found: str, place: str, cast: bool) -> None:
    """Refuse a column whose elements the input cannot take. `found` is their dtype.

    Raises:
        Error: the input cannot take them, or only with `cast`.
    """
    if found == value.dtype or _is_exact(found, value.dtype):
        return
    sentence = f"{place} has elements of {found}, and the input {value.name!r} takes {value.dtype}"
    sources = {**dict.fromkeys(_FLOATS, _FLOATS + _INTEGERS), **dict.fromkeys(_INTEGERS, _INTEGERS)}
    if found not in sources.get(value.dtype, ()):
        raise Error(sentence)
    if not cast:
        raise Error(f"{sentence}: a conversion may round; ask for it with `cast` (--cast)")


def converted(value: Value, array: Array) -> tuple[Array, Array | None]:
    """The array `[rows, …]` in the dtype of the input, and for each row whether its numbers fit, or `None` if all do.

    `refuse_dtype` has checked the dtype. A number does not fit if it is outside the range of the input's dtype.
    """
    wanted = dtypes.numpy_dtype(value.dtype)
    if array.dtype == wanted:
        return array, None
    if _is_exact(array.dtype.name, value.dtype):
        return array.astype(wanted), None
    if value.dtype in _INTEGERS:
        limits = np.iinfo(wanted)
        made, fits = array.astype(wanted), (array >= limits.min) & (array <= limits.max)
    else:
        with np.errstate(over="ignore"):
            made = array.astype(wanted)
        fits = np.asarray(np.isfinite(made) == np.isfinite(array))
    return made, np.asarray(fits.all(axis=tuple(range(1, fits.ndim))))


def _is_exact(found: str, wanted: str) -> bool:
    """Whether every number of one dtype is a number of another."""
    known = ("bool", *_INTEGERS, *_FLOATS)
    both = found in known and wanted in known
    return both and bool(np.can_cast(dtypes.numpy_dtype(found), dtypes.numpy_dtype(wanted), "safe"))
