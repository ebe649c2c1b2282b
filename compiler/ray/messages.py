"""The bodies of HTTP requests and responses: arrays by name, as JSON or in the format of safetensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler import array_files
from compiler.batch.rows import converted
from compiler.errors import Error

if TYPE_CHECKING:
    from compiler.batch.declared import Value
    from compiler.batch.rows import Array

__all__ = ["BINARY", "JSON", "packed", "unpacked"]

JSON, BINARY = "application/json", "application/octet-stream"
"""The types of bodies: JSON, and a safetensors file."""

_BODY = Path("body.safetensors")
_FLOATS = ("float16", "float32", "float64")


def unpacked(body: bytes, kind: str, inputs: Mapping[str, Value]) -> dict[str, Any]:
    """The arrays of a request, by name.

    JSON is an object of nested lists. Its numbers have to fit the input's dtype: an input of integers takes no 1.5.

    Raises:
        Error: the body has another format, or values that do not fit.
    """
    if kind == BINARY:
        arrays: dict[str, Any] = array_files.unpack(body, _BODY)
        return arrays
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Error(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise Error("the body is no JSON object with the inputs")
    return {name: _array(inputs[name], each) if name in inputs else each for name, each in found.items()}


def packed(outputs: Mapping[str, Array], kind: str) -> bytes:
    """The body of a response with these outputs.

    Raises:
        Error: the format cannot hold an output.
    """
    if kind == BINARY:
        return array_files.pack(outputs, _BODY)
    for name, each in outputs.items():
        if each.dtype.kind == "f" and not np.isfinite(each).all():
            raise Error(f"the output {name!r} is not finite, which JSON cannot express: ask for {BINARY}")
        if each.dtype.kind not in "biufO":
            raise Error(f"JSON has no numbers of {each.dtype}, as in the output {name!r}: ask for {BINARY}")
    return json.dumps({name: each.tolist() for name, each in outputs.items()}).encode()


def _array(value: Value, lists: object) -> Array:
    """Nested lists as an array of the input's dtype."""
    expected = f"the input {value.name!r} takes rows of {value}"
    try:
        array = np.array(lists)
    except ValueError:
        raise Error(f"{expected}, and its lists have several sizes") from None
    if value.dtype == "string":
        kinds = "U"
    elif value.dtype == "bool":
        kinds = "b"
    elif value.dtype in _FLOATS:
        kinds = "iuf"
    elif value.dtype.removeprefix("u") in ("int8", "int16", "int32", "int64"):
        kinds = "iu"
    else:
        raise Error(f"{expected}: send {BINARY}")
    if array.dtype.kind not in kinds or array.ndim == 0:
        raise Error(f"{expected}, and its lists hold other values")
    if kinds == "U":
        return array.astype(object)
    made, fits = converted(value, array)
    if fits is not None and not fits.all():
        raise Error(f"{expected}, and a number is outside the range of {value.dtype}")
    return made
