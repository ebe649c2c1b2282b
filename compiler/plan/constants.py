"""The elements of a plan's constants, by name."""

from __future__ import annotations

import io
import json

import numpy as np

from compiler.ir import dtypes
from compiler.plan.header import read_header

__all__ = ["named_constants"]


def named_constants(data: bytes) -> dict[str, np.ndarray]:
    """The numeric constants of the main block that have a name, as arrays in the memory of a valid plan's file."""
    file = io.BytesIO(data)
    header = read_header(file)
    begin, plan = file.tell(), json.loads(header["__metadata__"]["plan"])
    found = {}
    for entry in plan["main"]["constants"]:
        name, stored = plan["main"]["values"][entry["value"]]["name"], header.get(str(entry["constant"]))
        if name and stored is not None:
            first, last = stored["data_offsets"]
            bits = np.frombuffer(data, np.uint8, last - first, begin + first)
            dtype = plan["constants"][entry["constant"]]["Tensor"]["dtype"]
            found[name] = dtypes.from_stored(dtype, bits).reshape(stored["shape"])
    return found
