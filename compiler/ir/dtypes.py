"""The logical element types of a plan, and how NumPy, ONNX and files hold each.

A logical type has its NumPy or `ml_dtypes` name. Files hold the bits as a *carrier* type of the same width, which every
reader knows; 4-bit and 2-bit integers take a byte each, sign-extended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["NAMES", "STORED", "from_carrier", "from_ir", "name_of", "numpy_dtype", "to_carrier"]

_CARRIERS = {
    **dict.fromkeys(("int16", "uint16"), "int16"),
    **dict.fromkeys(("int64", "uint64"), "int64"),
    **dict.fromkeys(("float16", "bfloat16"), "uint16"),
    **{name: name for name in ("int32", "uint32", "float32", "float64")},
    **dict.fromkeys(("bool", "int8", "uint8", "int4", "uint4", "int2", "uint2"), "uint8"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), "uint8"),
    **dict.fromkeys(("float8_e8m0fnu", "float4_e2m1fn"), "uint8"),
}

NAMES = frozenset(_CARRIERS)
"""The logical types of numbers."""

STORED = {
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
"""The safetensors type of a constant; every other type is stored as bytes, `U8`."""

_SIGNED_SMALL = ("int4", "int2")


def numpy_dtype(name: str) -> np.dtype:
    """The NumPy type of a logical type; strings are objects."""
    if name == "string":
        return np.dtype(object)
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def name_of(array: np.ndarray) -> str:
    """The logical type of an array's elements.

    Raises:
        TypeError: no logical type is held so (complex numbers, dates …).
    """
    if array.dtype.kind in "OUST":
        return "string"
    name = str(array.dtype.name)
    if name not in _CARRIERS:
        raise TypeError(f"{name} is not a supported element type")
    return name


def to_carrier(array: np.ndarray) -> np.ndarray:
    """The bits of a numeric array, as files hold them; shares memory where it can."""
    name = name_of(array)
    if name in _SIGNED_SMALL:
        return np.asarray(array).astype(np.int8, order="C").view(np.uint8)
    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    return contiguous.astype(contiguous.dtype.newbyteorder("="), copy=False).view(_CARRIERS[name])


def from_carrier(name: str, array: np.ndarray) -> np.ndarray:
    """The array of a logical type with these bits."""
    if name == "string":
        return array
    if name in _SIGNED_SMALL:
        return array.view(np.int8).astype(numpy_dtype(name))
    return array.view(numpy_dtype(name))


def from_ir(dtype: ir.DataType) -> str:
    """The logical type of an ONNX type.

    Raises:
        TypeError: ONNX has the type, a plan does not (complex numbers).
    """
    if dtype.name == "STRING":
        return "string"
    name = "undefined" if dtype.name == "UNDEFINED" else str(dtype.numpy().name)
    if name not in _CARRIERS:
        raise TypeError(f"{name} is not a supported element type")
    return name
