"""Arrays of every element type, whose elements data movement must not change."""

from __future__ import annotations

from typing import Any

import numpy as np

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float16", "float32", "float64", "string"]


def numbered(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    """The numbers 0, 1, 2, … in a shape. Strings are these numbers in decimal. Every third boolean is true."""
    count = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    if dtype == "string":
        return count.astype(str).astype(object)
    return np.asarray(count % 3 == 0) if dtype == "bool" else count.astype(dtype)
