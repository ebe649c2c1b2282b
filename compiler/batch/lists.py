"""Columns of Arrow as rows of arrays: numbers, strings, and lists of them, also nested ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.batch.arrow import pyarrow
from compiler.batch.declared import Value
from compiler.batch.rows import Array, converted, refuse_dtype

__all__ = ["Column", "checked_type", "column_of"]

_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}
"""Arrow's names of floating-point types → NumPy's."""


def checked_type(value: Value, kind: Any, place: str, cast: bool) -> None:
    """Refuse a column whose rows the input cannot take, whatever they hold. `kind` is its Arrow type.

    A list may hold all elements of a row. Lists of lists have a level for each axis of the row.

    Raises:
        ValueError: the input cannot take it.
        Error: it takes the elements only with `cast`, or not at all.
    """
    if isinstance(kind, pyarrow().FixedShapeTensorType):
        is_in_order = kind.permutation in (None, [*range(len(kind.shape))])
        if not is_in_order or not value.takes(tuple(kind.shape)):
            raise ValueError(f"{place} has the type {kind}, and a row of the input {value.name!r} is {value}")
    leaf, depth, rank = _stored(kind), _depth(kind), len(value.shape)
    for _ in range(depth):
        leaf = _stored(leaf.value_type)
    if depth not in ({0, 1, rank} if value.free == 0 and value.known == 1 else {min(rank, 1), rank}):
        raise ValueError(f"{place} has the type {kind}, and a row of the input {value.name!r} is {value}")
    types = pyarrow().types
    if types.is_string(leaf) or types.is_large_string(leaf):
        found = "string"
    elif types.is_boolean(leaf) or types.is_integer(leaf) or types.is_floating(leaf):
        found = _FLOATS.get(str(leaf), str(leaf))
    else:
        raise ValueError(f"{place} has the type {kind}, which no input can take")
    refuse_dtype(value, found, place, cast)


@dataclass(frozen=True)
class Column:
    """The rows of a column: where their elements begin and end in `leaves`, and why some rows do not fit."""

    value: Value
    leaves: Array
    starts: Array
    ends: Array
    bad: dict[int, str]

    @property
    def sizes(self) -> Array:
        """The number of elements of each row."""
        return self.ends - self.starts

    def take(self, rows: Array) -> Array:
        """Rows of equal sizes, `[rows, …]`."""
        starts, size = self.starts[rows], int(self.ends[rows[0]] - self.starts[rows[0]])
        if len(rows) * size == self.ends[rows[-1]] - starts[0]:  # they follow each other
            flat = self.leaves[starts[0] : self.ends[rows[-1]]]
        else:
            flat = self.leaves[starts[:, None] + np.arange(size)]
        free = size // max(self.value.known, 1)
        return flat.reshape(len(rows), *(free if dim is None else dim for dim in self.value.shape))


def column_of(value: Value, column: Any) -> Column:
    """The rows of an Arrow array for an input, whose type `checked_type` has checked."""
    rows, bad = np.arange(len(column)), dict[int, str]()
    array, starts, ends = _storage(column), rows, rows + 1
    depth = _depth(column.type)
    for level in range(depth):
        _mark(bad, _nulls(array), starts, ends, f"{value.column!r} is null or holds null")
        offsets = _offsets(array)
        if depth > 1:
            problem = f"a list in {value.column!r} has a wrong size: a row of the input is {value}"
            _mark_sizes(bad, np.diff(offsets), starts, ends, value.shape[level], problem)
        starts, ends = offsets[starts], offsets[ends]
        array = _storage(array.values)
    _mark(bad, _nulls(array), starts, ends, f"{value.column!r} is null or holds null")
    for row in np.flatnonzero(_wrong_sizes(value, ends - starts)):
        size = int(ends[row] - starts[row])
        bad.setdefault(int(row), f"{value.column!r} has {size} elements, and a row of the input is {value}")
    leaves, fits = converted(value, _numpy(array))
    if fits is not None:
        _mark(bad, ~fits, starts, ends, f"a number of {value.column!r} is outside the range of {value.dtype}")
    return Column(value, leaves, starts, ends, bad)


def _wrong_sizes(value: Value, sizes: Array) -> Array:
    """Whether each number of elements differs from that of a row of the input."""
    if value.free == 0:
        return np.asarray(sizes != value.known)
    return np.asarray(sizes % value.known != 0 if value.known else sizes != 0)


def _mark_sizes(bad: dict[int, str], sizes: Array, starts: Array, ends: Array, wanted: int | None, reason: str) -> None:
    """Add the rows with a list of another size than `wanted`. If this is unknown, the lists of a row have one size."""
    if wanted is not None:
        _mark(bad, sizes != wanted, starts, ends, reason)
    else:
        _mark(bad, np.diff(sizes) != 0, starts, np.maximum(ends - 1, starts), reason)


def _mark(bad: dict[int, str], marks: Array, starts: Array, ends: Array, reason: str) -> None:
    """Add each row with a marked element to `bad`. The elements of a row lie between its start and its end."""
    if marks.any():
        before = np.concatenate([[0], np.cumsum(marks)])
        for row in np.flatnonzero(before[ends] > before[starts]):
            bad.setdefault(int(row), reason)


def _nulls(array: Any) -> Array:
    if array.null_count == 0:
        return np.zeros(len(array), bool)
    found: Array = array.is_null().to_numpy(zero_copy_only=False)
    return found


def _offsets(array: Any) -> Array:
    """The places in `array.values` where the lists begin and end."""
    if pyarrow().types.is_fixed_size_list(array.type):
        made: Array = (array.offset + np.arange(len(array) + 1)) * array.type.list_size
        return made
    return np.asarray(array.offsets.to_numpy()).astype(np.int64)


def _numpy(array: Any) -> Array:
    """The elements, with 0, false or an empty text instead of null."""
    if array.null_count:
        types = pyarrow().types
        is_text = types.is_string(array.type) or types.is_large_string(array.type)
        array = array.fill_null("" if is_text else pyarrow().scalar(0).cast(array.type))
    found: Array = array.to_numpy(zero_copy_only=False)
    return found


def _depth(kind: Any) -> int:
    """The number of levels of lists in a type."""
    stored = _stored(kind)
    return 1 + _depth(stored.value_type) if _is_list(stored) else 0


def _is_list(kind: Any) -> bool:
    types = pyarrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _stored(kind: Any) -> Any:
    """The type without its dictionary and without the name of a tensor."""
    if isinstance(kind, pyarrow().FixedShapeTensorType):
        return _stored(kind.storage_type)
    return kind.value_type if pyarrow().types.is_dictionary(kind) else kind


def _storage(array: Any) -> Any:
    """The array without its dictionary and without the name of a tensor."""
    if isinstance(array.type, pyarrow().FixedShapeTensorType):
        return _storage(array.storage)
    return array.dictionary_decode() if pyarrow().types.is_dictionary(array.type) else array
