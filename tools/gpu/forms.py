"""The choice of kernels for a `float32` convolution on a GPU: a copy of the planner in `runtime/plan/src/gpu/conv/`."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpu.shapes import Shape

TILES = {"small": (32, 32), "medium": (64, 64), "large": (128, 64)}
"""Kind of tile → the numbers of outputs and of windows in a tile."""
RATES = {"product": 133.0, "direct": 5.0, "small": 51.0, "medium": 84.0, "large": 108.0}
"""Kind of form → the multiply-adds of a multiprocessor in a nanosecond."""
MULTIPROCESSORS = 132
LAUNCH, FINISH, DIRECT_START = 3.4, 1.5, 0.35
"""Microseconds of a form's kernel, of the kernel that adds parts, and of the start of `direct`, without their work."""
BYTES = 3.35e6
"""Bytes that the memory moves in a microsecond."""
TERM, SPLIT = 0.0054, 512
"""Microseconds of a product for each term of its sums, up to a number of terms."""
DEPTH, START = 16, 29
"""Terms that a tile loads at a time, and terms that it could multiply while it starts and ends."""


@dataclass(frozen=True)
class Constants:
    """The limits in `constants.rs`, which describes them."""

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
    """The form that a plan chooses with these constants: the one with the least expected time within its limits."""
    found = [PRODUCT] if is_product(shape, constants) else []
    found += [DIRECT] if is_direct(shape, constants) else []
    return min([*found, tiles(shape, constants)], key=lambda form: cost(shape, form))


def cost(shape: Shape, form: Form) -> float:
    """The expected microseconds of a form."""
    if form.kind in TILES:
        return _cost_of_tiles(shape, form)
    start = TERM * min(depth(shape), SPLIT) if form == PRODUCT else DIRECT_START
    return start + _kernel(sums(shape) * depth(shape) / MULTIPROCESSORS, form.kind)


def _cost_of_tiles(shape: Shape, form: Form) -> float:
    """The expected microseconds of tiles: the multiprocessors compute blocks one after another."""
    waves = -(-blocks(shape, form.kind) * form.parts // MULTIPROCESSORS)
    terms = math.ceil(depth(shape) / form.parts / DEPTH) * DEPTH + START
    moved = (form.parts + 1) * sums(shape) * 4
    finish = FINISH + moved / BYTES if form.parts > 1 else 0.0
    return _kernel(waves * terms * math.prod(TILES[form.kind]), form.kind) + finish


def _kernel(products: float, kind: str) -> float:
    """The microseconds of a kernel in which each multiprocessor computes so many multiply-adds."""
    return LAUNCH + products / RATES[kind] / 1e3


def is_product(shape: Shape, constants: Constants) -> bool:
    """Whether the convolution can run as a matrix product."""
    channels, outputs = shape.channels // shape.groups, shape.outputs // shape.groups
    is_one = shape.groups == 1 or (shape.batch == 1 and min(channels, outputs) >= constants.few)
    is_point = (shape.kernel, shape.stride, shape.padding) == (1, 1, 0)
    return is_one and is_point and not shape.is_transposed


def is_direct(shape: Shape, constants: Constants) -> bool:
    """Whether the form that computes each output in one thread is within its limits."""
    is_worth = depth(shape) <= constants.short or sums(shape) >= constants.many
    return shape.outputs // shape.groups < constants.few and is_worth


def tiles(shape: Shape, constants: Constants) -> Form:
    """The fastest tile within its limits, and its number of parts. Small tiles have no limits."""
    found = []
    for tile in TILES:
        is_whole = computed(shape, tile) <= computed(shape, "small") // 3 * 4
        number = parts(shape, tile, constants)
        if tile == "small" or (is_whole and blocks(shape, tile) * number >= constants.enough):
            found.append(Form(tile, number))
    # Of equally fast tiles, the largest.
    return min(reversed(found), key=lambda form: cost(shape, form))


def parts(shape: Shape, tile: str, constants: Constants) -> int:
    """The number of parts of the depth with which a tile has enough blocks."""
    wanted = -(-constants.enough // blocks(shape, tile))
    return max(1, min(wanted, depth(shape) // constants.part, constants.most_parts))


def sums(shape: Shape) -> int:
    """The number of sums."""
    return int(shape.batch * shape.outputs * shape.output_size**shape.axes)


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
