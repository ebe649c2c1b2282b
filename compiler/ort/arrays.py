"""Arrays that programs pass: lists, memory at an address, and buffers for outputs."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.ir.dtypes import name_of
from compiler.ort.elements import dtype_of

__all__ = ["array_at", "check_fit", "contiguous", "from_list"]


def contiguous(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array with contiguous elements in the machine's byte order; the array itself if it is so already.

    Raises:
        RuntimeError: it is no array, or its element type is not supported.
    """
    if not isinstance(array, np.ndarray):
        raise RuntimeError(f"expected a NumPy array, found {type(array).__name__}")
    try:
        name_of(array)
    except TypeError as error:
        raise RuntimeError(str(error)) from None
    return np.asarray(array, array.dtype.newbyteorder("="), order="C")


def array_at(address: int, element_type: Any, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The array of this type and shape at an address of the CPU's memory. The caller keeps the memory.

    Raises:
        TypeError, ValueError: the type is no type of numbers, a size is negative, or there is no address.
    """
    dtype = dtype_of(element_type)
    if any(size < 0 for size in shape):
        raise ValueError(f"shape: expected sizes from 0, found {list(shape)}")
    count = math.prod(shape) * dtype.itemsize
    if count == 0:
        return np.empty(shape, dtype)
    if not address:
        raise ValueError("buffer_ptr: expected an address, found 0")
    return np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(address)).view(dtype).reshape(shape)


def from_list(name: str, items: list[Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """A list as an array of the type of an input.

    Raises:
        RuntimeError: the list has no regular shape, or an item that this type does not hold.
    """
    try:
        array = np.asarray(items)
        fits = array.size == 0 or np.can_cast(array.dtype, dtype, "same_kind") or dtype.kind == "O"
        found = array.astype(dtype)
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"input {name!r}: could not create a tensor from the list: {error}") from None
    if not fits or (dtype.kind in "iu" and array.size and (found != array).any()):
        raise RuntimeError(f"input {name!r}: could not create a tensor of {dtype} from the list: it has other values")
    return found


def check_fit(target: np.ndarray[Any, Any], value: Any, what: str) -> None:
    """Check that a value can be copied into an array: it is an array of the same dtype and shape.

    Raises:
        RuntimeError: it is not, or the target is read-only.
    """
    if not isinstance(value, np.ndarray):
        raise RuntimeError(f"{what}: expected a tensor, found {'nothing' if value is None else 'a sequence'}")
    if target.dtype != value.dtype or target.shape != value.shape:
        expected = f"{target.dtype} {list(target.shape)}"
        raise RuntimeError(f"{what}: expected {expected}, found {value.dtype} {list(value.shape)}")
    if not target.flags.writeable:
        raise RuntimeError(f"{what}: the array is read-only")
