"""The choice of kernels for a `float32` convolution on a GPU: a copy of `runtime/plan/src/gpu/conv/form.rs`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu.shapes import Shape

TILES = {"small": (32, 32), "medium": (64, 64), "large": (128, 64)}
"""Kind of tile → the numbers of outputs and of windows in a tile."""


@dataclass(frozen=True)
class Constants:
    """The constants of `form.rs`, which describes them."""

    enough: int = 256
    part: int = 128
    most_parts: int = 32
    few: int = 16
    short: int = 64
    many: int = 1 << 18


@dataclass(frozen=True)
class Form:
    """A kind of kernel (`product`, `direct` or a tile), and the number of parts into which a tile's depth is split."""

    kind: str
    parts: int = 1

    @property
    def name(self) -> str:
        """The value of the environment variable `CANDLE_PLAN_CONV`."""
        return f"{self.kind}:{self.parts}" if self.kind in TILES else self.kind


PRODUCT, DIRECT = Form("product"), Form("direct")


def form_of(shape: Shape, constants: Constants) -> Form:
    """The form that a plan chooses with these constants."""
    if is_product(shape, constants):
        return PRODUCT
    return DIRECT if is_direct(shape, constants) else tiles(shape, constants)


def is_product(shape: Shape, constants: Constants) -> bool:
    """Whether the convolution runs as a matrix product."""
    channels, outputs = shape.channels // shape.groups, shape.outputs // shape.groups
    is_one = shape.groups == 1 or (shape.batch == 1 and min(channels, outputs) >= constants.few)
    is_point = (shape.kernel, shape.stride, shape.padding) == (1, 1, 0)
    return is_one and is_point and not shape.is_transposed


def is_direct(shape: Shape, constants: Constants) -> bool:
    """Whether one thread computes each output, for a convolution that is not a product."""
    elements = shape.batch * shape.outputs * shape.output_size**shape.axes
    is_worth = depth(shape) <= constants.short or elements >= constants.many
    return shape.outputs // shape.groups < constants.few and is_worth


def tiles(shape: Shape, constants: Constants) -> Form:
    """The tile and the number of parts, for a convolution with tiles."""
    for tile in ("large", "medium"):
        is_whole = computed(shape, tile) <= computed(shape, "small") // 3 * 4
        if blocks(shape, tile) * parts(shape, tile, constants) >= constants.enough and is_whole:
            return Form(tile, parts(shape, tile, constants))
    return Form("small", parts(shape, "small", constants))


def parts(shape: Shape, tile: str, constants: Constants) -> int:
    """The number of parts of the depth with which a tile has enough blocks."""
    wanted = -(-constants.enough // blocks(shape, tile))
    return max(1, min(wanted, depth(shape) // constants.part, constants.most_parts))


def depth(shape: Shape) -> int:
    """The number of terms of a sum."""
    apart = shape.stride // math.gcd(shape.stride, shape.dilation) if shape.is_transposed else 1
    return int(shape.channels // shape.groups * (-(-shape.kernel // apart)) ** shape.axes)


def blocks(shape: Shape, tile: str) -> int:
    """The number of blocks of a tile, in one part."""
    high, wide = TILES[tile]
    size, step = shape.output_size, shape.stride if shape.is_transposed else 1
    windows = shape.batch * (-(-size // step)) ** shape.axes
    pieces = shape.groups * min(step, size) ** shape.axes
    return int(-(-(shape.outputs // shape.groups) // high) * -(-windows // wide) * pieces)


def computed(shape: Shape, tile: str) -> int:
    """The number of outputs that the blocks of a tile compute, including discarded ones."""
    return blocks(shape, tile) * math.prod(TILES[tile])
