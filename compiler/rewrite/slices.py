"""The elements that slices take along each axis of a value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of
from compiler.rewrite.rule import Rewriter

__all__ = ["Range", "ranges_of", "slice_of"]

_FAR = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Range:
    """Places `start, start + step, …` before `end` of an axis; an `end` beyond the axis is its end."""

    start: int
    end: int
    step: int = 1

    def of(self, other: Range) -> Range:
        """These places of the places of another range."""
        end = other.start + self.end * other.step
        return Range(other.start + self.start * other.step, min(end, other.end), self.step * other.step)


def ranges_of(node: ir.Node) -> dict[int, Range] | None:
    """The range of a forward Slice along each of its axes; `None` if unknown."""
    x, given = node.inputs[0], [constant_of(value) for value in node.inputs[1:]]
    if x is None or x.shape is None or not 3 <= len(given) <= 4 or any(array is None for array in given):
        return None
    columns = [[int(item) for item in array.ravel()] for array in given if array is not None]
    steps, rank = columns[3] if len(columns) > 3 else [1] * len(columns[0]), len(x.shape)
    if {len(column) for column in (*columns, steps)} != {len(columns[0])} or any(
        not -rank <= axis < rank for axis in columns[2]
    ):
        return None
    found: dict[int, Range] = {}
    for start, end, axis, step in zip(*columns[:3], steps, strict=True):
        size = x.shape.dims[axis]
        if isinstance(size, int):
            start, end = (max(0, at + size) if at < 0 else min(at, size) for at in (start, end))
        if step < 1 or start < 0 or end < 0:
            return None
        found[axis % len(x.shape)] = Range(start, max(start, end), step)
    return found


def slice_of(x: ir.Value, ranges: dict[int, Range], new: Rewriter) -> ir.Value:
    """`Slice(x)` that takes these places."""
    columns = {
        "starts": [min(each.start, _FAR) for each in ranges.values()],  # behind the end of every axis
        "ends": [min(each.end, _FAR) for each in ranges.values()],
        "axes": list(ranges),
        "steps": [min(each.step, _FAR) for each in ranges.values()],
    }
    return new.op("Slice", x, *(new.constant(np.array(column, np.int64), name) for name, column in columns.items()))
