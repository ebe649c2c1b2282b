"""The logical element types of a plan, and their representations in NumPy, ONNX and files.

A logical type has its NumPy or `ml_dtypes` name. Files hold the bits in a *storage type* of the same width, which every
reader knows; 4-bit and 2-bit integers take a byte each, sign-extended.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["NAMES", "SAFETENSORS_TYPES", "from_ir", "from_stored", "name_of", "numpy_dtype", "to_ir", "to_stored"]

_STORAGE_TYPES = {
    **dict.fromkeys(("int16", "uint16"), "int16"),
    **dict.fromkeys(("int64", "uint64"), "int64"),
    **dict.fromkeys(("float16", "bfloat16"), "uint16"),
    **{name: name for name in ("int32", "uint32", "float32", "float64")},
    **dict.fromkeys(("bool", "int8", "uint8", "int4", "uint4", "int2", "uint2"), "uint8"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), "uint8"),
    **dict.fromkeys(("float8_e8m0fnu", "float4_e2m1fn"), "uint8"),
}

NAMES = frozenset(_STORAGE_TYPES)
"""The logical types of numbers."""

SAFETENSORS_TYPES = {
    "bool": "BOOL",
    "int8": "I8",
    "int16": "I16",
    "int32": "I32",
    "int64": "I64",
    "uint16": "U16",
    "uint32": "U32",
    "uint64": "U64",
    "float16": "F16",
    "bfloat16": "BF16",
    "float32": "F32",
    "float64": "F64",
}
"""Logical type → safetensors type of a constant. Constants of every other type are stored as bytes, `U8`."""

_SIGNED_SMALL = ("int4", "int2")


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy type of a logical type; `object` for strings."""
    if name == "string":
        return np.dtype(object)
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def name_of(array: np.ndarray) -> str:
    """The logical type of an array's elements.

    Raises:
        TypeError: no logical type has these elements (complex numbers, dates …).
    """
    if array.dtype.kind in "OUST":
        return "string"
    name = str(array.dtype.name)
    if name not in _STORAGE_TYPES:
        raise TypeError(f"{name} is not a supported element type")
    return name


def to_stored(array: np.ndarray) -> np.ndarray:
    """Reinterprets a numeric array as its storage type; shares memory if possible."""
    name = name_of(array)
    if name in _SIGNED_SMALL:
        return np.asarray(array).astype(np.int8, order="C").view(np.uint8)
    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    return contiguous.astype(contiguous.dtype.newbyteorder("="), copy=False).view(_STORAGE_TYPES[name])


def from_stored(name: str, array: np.ndarray) -> np.ndarray:
    """Reinterprets an array of the storage type as the logical type `name`."""
    if name == "string":
        return array
    if name in _SIGNED_SMALL:
        return array.view(np.int8).astype(numpy_dtype(name))
    return array.view(numpy_dtype(name))


def to_ir(name: str) -> ir.DataType:
    """The ONNX type of a logical type."""
    import onnx_ir as ir

    return ir.DataType.STRING if name == "string" else ir.DataType.from_numpy(numpy_dtype(name))


@cache
def from_ir(dtype: ir.DataType) -> str:
    """The logical type of an ONNX type.

    Raises:
        TypeError: plans do not support the type (complex numbers).
    """
    if dtype.name == "STRING":
        return "string"
    name = "undefined" if dtype.name == "UNDEFINED" else str(dtype.numpy().name)
    if name not in _STORAGE_TYPES:
        raise TypeError(f"{name} is not a supported element type")
    return name
