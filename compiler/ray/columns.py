"""Columns of a batch of `ray.data` as the rows of an input."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from compiler.batch.rows import Array, converted, refuse_dtype
from compiler.errors import Error
from compiler.ir import dtypes

if TYPE_CHECKING:
    from compiler.batch.declared import Value

__all__ = ["column_of"]


def column_of(value: Value, column: Array, cast: bool) -> tuple[Array, dict[int, str]]:
    """The rows of a column for an input, `[rows, …]`, and the reasons why some rows do not fit.

    A row may be a list of all its elements in order. Ray gives lists as objects.

    Raises:
        Error: the input cannot take the dtype or the shape of the rows, or they have several shapes.
    """
    place = f"the column {value.column!r}"
    rows = np.asarray(column)
    if rows.dtype == object and len(rows) and not isinstance(rows[0], str):
        rows = _joined(value, rows, place)
    elif rows.dtype.kind == "U":
        rows = rows.astype(object)
    name = dtypes.name_of(rows)
    refuse_dtype(value, name, place, cast)
    is_flat = value.free == 0 and rows.ndim <= 2 and math.prod(rows.shape[1:]) == value.known
    if is_flat:
        rows = rows.reshape(len(rows), *(size or 0 for size in value.shape))
    elif not value.takes(rows.shape[1:]):
        found = list(rows.shape[1:])
        raise Error(f"{place} has rows of the shape {found}, and a row of the input {value.name!r} is {value}")
    rows, fits = converted(value, rows)
    reason = f"a number of {value.column!r} is outside the range of {value.dtype}"
    bad = {} if fits is None else {int(row): reason for row in np.flatnonzero(~fits)}
    return rows, bad


def _joined(value: Value, rows: Array, place: str) -> Array:
    """The rows of a column of lists, `[rows, …]`."""
    found: list[Array] = []
    for at, row in enumerate(rows):
        made = _array(row)
        if made is None:
            raise Error(f"row {at} of the batch: {place} is null, holds null, or holds lists of several sizes")
        if found and made.shape != found[0].shape:
            shapes = f"the shape {list(made.shape)}, and row 0 has {list(found[0].shape)}"
            raise Error(f"row {at} of the batch: {place} has {shapes}: the rows of a batch need one shape")
        found.append(made)
    if any(each.dtype != found[0].dtype for each in found):
        raise Error(f"{place} has rows of several dtypes, and the input {value.name!r} takes {value.dtype}")
    return np.stack(found)


def _array(row: object) -> Array | None:
    """A list of numbers, or of lists of numbers, as an array."""
    try:
        array = np.asarray(row)
        if array.dtype == object:
            array = np.asarray(array.tolist())
    except ValueError:  # the lists have several sizes
        return None
    return array if array.dtype.kind in "biuf" else None
