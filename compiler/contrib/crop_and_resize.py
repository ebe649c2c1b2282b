"""CropAndResize: regions of images, resized to one size."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, INT64, Body
from compiler.contrib.expansion.node import Node, expands

__all__: list[str] = []

_Axis = tuple[ir.Value, ir.Value]
"""Positions on an axis of the images, and whether they lie inside."""


@expands("CropAndResize")
def crop_and_resize(node: Node, new: Body) -> ir.Value:
    """Regions `[y1, x1, y2, x2]` of images `[N, C, H, W]`, with corners as fractions of `H - 1` and `W - 1`.

    The result is `[regions, C, *crop_size]`. Points outside of the image get the attribute `extrapolation_value`.
    """
    found = node.dtype(0, "X", FLOAT, ir.DataType.FLOAT16)
    mode = node.string("mode", "bilinear")
    if mode not in ("bilinear", "nearest"):
        node.refuse("CC0202", f"CropAndResize has no mode {mode!r}; it is 'bilinear' or 'nearest'")
    counts = node.constant(3)
    if counts is None or counts.shape != (2,) or (counts < 1).any():
        node.refuse("CC0205", "CropAndResize needs a constant crop_size of two positive numbers")
    x, rois = new.upcast(node.input(0)), new.upcast(node.input(1))
    limits = [new.op("Sub", new.op("Shape", x, start=axis, end=axis + 1), new.numbers(1)) for axis in (2, 3)]
    edges = [new.slice(rois, 1, index, index + 1) for index in range(4)]
    rows, columns = (
        _positions(new, edges[axis], edges[axis + 2], new.op("Cast", limits[axis], to=FLOAT), int(counts[axis]))
        for axis in range(2)
    )
    pixels = _Pixels(new, x, limits, new.op("Cast", node.input(2), to=INT64))
    y = (_bilinear if mode == "bilinear" else _nearest)(new, pixels, rows[0], columns[0])
    inside = new.op("And", new.unsqueeze(rows[1], 2), new.unsqueeze(columns[1], 1))
    outside = new.scalar(node.float("extrapolation_value", 0.0), FLOAT)
    y = new.op("Where", new.unsqueeze(inside, 3), y, outside)
    return new.cast(new.transpose(y, 0, 3, 1, 2), found, FLOAT)


def _positions(new: Body, start: ir.Value, end: ir.Value, limit: ir.Value, count: int) -> _Axis:
    """`count` positions from `start` to `end`, lists `[regions, 1]` of fractions of `limit`."""
    if count == 1:
        at = new.op("Mul", new.op("Mul", new.op("Add", start, end), new.scalar(0.5, FLOAT)), limit)
    else:
        length = new.op("Mul", new.op("Sub", end, start), limit)
        step = new.op("Div", length, new.scalar(count - 1, FLOAT))
        offsets = new.op("Mul", new.constant(np.arange(count - 1, dtype=np.float32)), step)
        at = new.joined(new.op("Add", new.op("Mul", start, limit), offsets), new.op("Mul", end, limit), axis=1)
    low = new.scalar(0, FLOAT)
    inside = new.op("And", new.op("GreaterOrEqual", at, low), new.op("LessOrEqual", at, limit))
    return new.op("Max", new.op("Min", at, limit), low), inside


class _Pixels:
    """The pixels of each region's image: `[regions, rows, columns, C]` for whole positions."""

    def __init__(self, new: Body, x: ir.Value, limits: list[ir.Value], images: ir.Value) -> None:
        self.new = new
        channels = new.op("Shape", x, start=1, end=2)
        self.all = new.op("Reshape", new.transpose(x, 0, 2, 3, 1), new.sizes(-1, channels))
        self.height, self.width = (new.op("Add", limit, new.numbers(1)) for limit in limits)
        self.first = new.op("Mul", new.unsqueeze(images, 1), self.height)

    def at(self, rows: ir.Value, columns: ir.Value) -> ir.Value:
        """The pixels at rows and columns `[regions, …]`."""
        new = self.new
        lines = new.op("Mul", new.op("Add", self.first, new.op("Cast", rows, to=INT64)), self.width)
        places = new.op("Add", new.unsqueeze(lines, 2), new.unsqueeze(new.op("Cast", columns, to=INT64), 1))
        return new.op("Gather", self.all, places, axis=0)


def _nearest(new: Body, pixels: _Pixels, rows: ir.Value, columns: ir.Value) -> ir.Value:
    """The nearest pixels. Ties go to the larger position."""

    def whole(at: ir.Value) -> ir.Value:
        low = new.op("Floor", at)
        is_later = new.op("GreaterOrEqual", new.op("Sub", at, low), new.scalar(0.5, FLOAT))
        return new.op("Add", low, new.op("Cast", is_later, to=FLOAT))

    return pixels.at(whole(rows), whole(columns))


def _bilinear(new: Body, pixels: _Pixels, rows: ir.Value, columns: ir.Value) -> ir.Value:
    """Linear interpolation along the columns, then along the rows."""
    low, high = (new.op(name, rows) for name in ("Floor", "Ceil"))
    left, right = (new.op(name, columns) for name in ("Floor", "Ceil"))
    across = new.unsqueeze(new.op("Sub", columns, left), 1, 3)
    down = new.unsqueeze(new.op("Sub", rows, low), 2, 3)

    def between(first: ir.Value, second: ir.Value, part: ir.Value) -> ir.Value:
        return new.op("Add", first, new.op("Mul", new.op("Sub", second, first), part))

    top, bottom = (between(pixels.at(row, left), pixels.at(row, right), across) for row in (low, high))
    return between(top, bottom, down)
