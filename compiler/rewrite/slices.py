"""Creation of a Slice from the range of each axis."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.ir.views.slice import Range
from compiler.rewrite.rule import Rewriter

__all__ = ["slice_of"]

_FAR = np.iinfo(np.int64).max
_VERSION = 13
"""A version of Slice whose bounds are inputs."""


def slice_of(x: ir.Value, ranges: dict[int, Range], new: Rewriter) -> ir.Value:
    """The `Slice(x)` of these ranges."""
    columns = {
        "starts": [min(each.start, _FAR) for each in ranges.values()],  # beyond the end of every axis
        "ends": [min(each.end, _FAR) for each in ranges.values()],
        "axes": list(ranges),
        "steps": [min(each.step, _FAR) for each in ranges.values()],
    }
    bounds = (new.constant(np.array(column, np.int64), name) for name, column in columns.items())
    return new.op("Slice", x, *bounds, version=_VERSION)
