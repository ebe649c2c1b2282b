"""Replaces GridSample of volumes with arithmetic on the coordinates, and a Gather for each corner of a cell.

The image becomes a table with a row of `C` elements for each place. In mode linear, a point is a mean of eight rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import rank, static_shape
from compiler.ir.views.grid_sample import GridSampleView
from compiler.rewrite.volume import UnloweredError, Volumes, lowering_pass, volume

__all__ = ["lower_3d_grid_sample"]

_MODES = ("linear", "nearest")
_PADDINGS = ("zeros", "border", "reflection")
_FARTHEST = 2.0**62
"""The limit of coordinates, which int64 must hold."""
_NOWHERE = -(2**60)
"""The row of a place outside the image: negative also after the addition of the rows of two axes."""


@dataclass(frozen=True)
class _Sampler:
    """The image `x` `[N, C, D, H, W]`, and the numbers of its elements along `[W, H, D]`, the order of coordinates."""

    x: ir.Value
    is_linear: bool
    padding: str
    align_corners: bool
    kind: ir.DataType
    """The type of coordinates."""
    new: Volumes

    def number(self, value: float) -> ir.Value:
        """A constant of the type of coordinates."""
        return self.new.constant(np.array(value, self.kind.numpy()), "number")

    def sizes(self, kind: ir.DataType) -> ir.Value:
        """`[W, H, D]`."""
        shape = static_shape(self.x)
        if shape is not None:
            return self.new.constant(np.array(shape[:1:-1], kind.numpy()), "sizes")
        sizes = self.new.add("Gather", self.new.add("Shape", self.x), self.new.ints(4, 3, 2))
        return self.new.add("Cast", sizes, to=kind)

    def pixels(self, grid: ir.Value) -> ir.Value:
        """The coordinates, from -1 to 1 in the grid, as numbers of pixels."""
        add, one, half = self.new.add, self.number(1), self.number(0.5)
        sizes, moved = self.sizes(self.kind), add("Add", grid, one)
        if self.align_corners:
            pixels = add("Mul", add("Mul", moved, half), add("Sub", sizes, one))
        else:
            pixels = add("Mul", add("Sub", add("Mul", moved, sizes), one), half)
        return add("Clip", pixels, self.number(-_FARTHEST), self.number(_FARTHEST))

    def places(self, at: ir.Value) -> list[ir.Value]:
        """The parts of the rows of these places that come from `x`, from `y` and from `z`, `[N, D', H', W', 1]`."""
        add, one, zero = self.new.add, self.new.ints(1), self.new.ints(0)
        sizes = self.sizes(ir.DataType.INT64)
        last = add("Sub", sizes, one)
        if self.padding == "reflection":
            period = add("Add", last, last) if self.align_corners else add("Add", sizes, sizes)
            rest = add("Mod", at, add("Max", period, one))
            top = period if self.align_corners else add("Sub", period, one)
            at = add("Min", rest, add("Sub", top, rest))
        inside = add("Min", add("Max", at, zero), last)
        steps = add("Concat", one, self.product(4), self.product(4, 3), axis=0)
        rows = add("Mul", inside, steps)
        if self.padding == "zeros":
            rows = add("Where", add("Equal", at, inside), rows, self.new.ints(_NOWHERE))
        return _coordinates(rows, self.new)

    def product(self, *axes: int) -> ir.Value:
        """The product of sizes of the image, as a list of one number."""
        shape = static_shape(self.x)
        if shape is not None:
            return self.new.ints(math.prod(shape[axis] for axis in axes))
        sizes = [self.new.size(self.x, axis) for axis in axes]
        return reduce(lambda one, other: self.new.add("Mul", one, other), sizes)

    def images(self) -> ir.Value:
        """The first row of each image, `[N, 1, 1, 1, 1]`."""
        each, shape = self.product(4, 3, 2), static_shape(self.x)
        if shape is not None:
            return self.new.constant(np.arange(shape[0]).reshape(-1, 1, 1, 1, 1) * math.prod(shape[2:]), "images")
        zero, one = (self.new.constant(np.array(number), "number") for number in (0, 1))
        count = self.new.add("Squeeze", self.product(0), self.new.ints(0))
        numbers = self.new.add("Range", zero, count, one)
        return self.new.add("Mul", self.new.add("Unsqueeze", numbers, self.new.ints(1, 2, 3, 4)), each)

    def table(self) -> ir.Value:
        """The image as `[N·D·H·W, C]`; for padding with zeros, with a row of zeros at the end."""
        last = self.new.add("Transpose", self.x, perm=(0, 2, 3, 4, 1))
        table = self.new.reshape(last, [[(self.x, axis) for axis in (0, 2, 3, 4)], [(self.x, 1)]])
        return table if self.padding != "zeros" else self.new.add("Pad", table, self.new.ints(0, 0, 1, 0))

    def gathered(self, table: ir.Value, parts: Sequence[ir.Value]) -> ir.Value:
        """The rows `[N, D', H', W', C]` at the sums of the parts."""
        add = self.new.add
        rows = reduce(lambda one, other: add("Add", one, other), parts)
        if self.padding == "zeros":
            outside = add("Less", rows, self.new.ints(0))
            rows = add("Where", outside, self.product(0, 2, 3, 4), rows)
        return add("Gather", table, add("Squeeze", rows, self.new.ints(4)), axis=0)


def _grid_sample(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`GridSample(x, grid)`, with a grid `[N, D', H', W', 3]` of coordinates `(x, y, z)`."""
    x, grid = volume(node), node.inputs[1]
    sampler = _sampler(node, x, new)
    pixels = sampler.pixels(new.add("Cast", grid, to=sampler.kind))
    if sampler.is_linear:
        result = _interpolated(sampler, pixels, new)
    else:
        parts = sampler.places(new.add("Cast", new.add("Round", pixels), to=ir.DataType.INT64))
        result = sampler.gathered(sampler.table(), [sampler.images(), *parts])
    return [new.add("Transpose", result, perm=(0, 4, 1, 2, 3))]


def _sampler(node: ir.Node, x: ir.Value, new: Volumes) -> _Sampler:
    """The sampler of a node with valid attributes and types."""
    view = GridSampleView[ir.Value].of(node)
    if view is None:
        raise UnloweredError("an attribute has the wrong type")
    if view.mode not in _MODES or view.padding not in _PADDINGS:
        raise UnloweredError(f"it has mode {view.mode!r} with padding {view.padding!r}")
    grid, is_linear = view.grid, view.mode == "linear"
    if grid is None or rank(grid) != rank(x) or grid.shape is None or grid.shape.dims[-1] != 3:
        raise UnloweredError("its grid is not [N, D, H, W, 3]")
    pair = (None if x.shape is None else x.shape.dims[0], grid.shape.dims[0])
    if all(isinstance(size, int) for size in pair) and pair[0] != pair[1]:
        raise UnloweredError(f"it has {pair[0]} images and {pair[1]} grids")
    if x.dtype is None or grid.dtype is None or not grid.dtype.is_floating_point():
        raise UnloweredError("the type of its image or of its grid is not known")
    if is_linear and not x.dtype.is_floating_point():
        raise UnloweredError(f"{x.dtype} numbers cannot be interpolated")
    kind = ir.DataType.DOUBLE if grid.dtype == ir.DataType.DOUBLE else ir.DataType.FLOAT
    return _Sampler(x, is_linear, view.padding, view.align_corners, kind, new)


def _interpolated(sampler: _Sampler, pixels: ir.Value, new: Volumes) -> ir.Value:
    """The sum of the eight elements around each point, `[N, D', H', W', C]`."""
    table, images = sampler.table(), sampler.images()
    kind, given = sampler.x.dtype, sampler.x.dtype
    if kind != ir.DataType.DOUBLE:  # as in the kernel of two dimensions
        kind = ir.DataType.FLOAT
    low = new.add("Floor", pixels)
    at, far = new.add("Cast", low, to=ir.DataType.INT64), new.add("Cast", new.add("Sub", pixels, low), to=kind)
    near = new.add("Sub", new.constant(np.array(1, kind.numpy()), "one"), far)
    places = [sampler.places(at), sampler.places(new.add("Add", at, new.ints(1)))]
    weights = [_coordinates(near, new), _coordinates(far, new)]

    def term(corner: tuple[int, ...]) -> ir.Value:
        """The elements at a corner of each cell, times their weights."""
        elements = sampler.gathered(table, [images, *(places[end][axis] for axis, end in enumerate(corner))])
        factors = [weights[end][axis] for axis, end in enumerate(corner)]
        weight = reduce(lambda one, other: new.add("Mul", one, other), factors)
        return new.add("Mul", new.add("Cast", elements, to=kind), weight)

    terms = map(term, itertools.product((0, 1), repeat=3))
    return new.add("Cast", reduce(lambda one, other: new.add("Add", one, other), terms), to=given)


def _coordinates(points: ir.Value, new: Volumes) -> list[ir.Value]:
    """The coordinates `x`, `y` and `z` of points, `[N, D', H', W', 1]`."""
    ends = [new.ints(axis) for axis in range(4)]
    return [new.add("Slice", points, ends[axis], ends[axis + 1], new.ints(4)) for axis in range(3)]


lower_3d_grid_sample = lowering_pass(
    "lower_3d_grid_sample", {"GridSample": _grid_sample}, result="3-D grid samplings lowered"
)
