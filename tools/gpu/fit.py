"""The constants of `way.rs` for which plans would choose the fastest ways, found from the times of ways."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np

from gpu.shapes import Shape
from gpu.ways import DIRECT, PRODUCT, TILES, Constants, Way, is_direct, is_product, parts, tiles, way_of

Times = Mapping[str, float]
"""Microseconds of one convolution by the names of ways."""

ENOUGH = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
PART = (32, 64, 128, 256, 512)
MOST_PARTS = (4, 8, 16, 32)
FEW = (4, 8, 16, 24, 32, 64)
SHORT = (16, 32, 64, 128, 256, 512)
MANY = tuple(1 << bits for bits in range(14, 25, 2))
"""The candidates for each constant."""
TIMED = (1, 4, 32, 2, 8)
"""The parts that are timed, in this order; times between them are interpolated."""
NOISE = 1e-3
"""By how much better the logarithm of the mean has to be for the constants to move."""
_MOST = Constants(max(ENOUGH), min(PART), max(MOST_PARTS))


@dataclass(frozen=True)
class Fit:
    """Constants, and the geometric mean of a chosen way's time as a part of the fastest one's, before and after."""

    constants: Constants
    before: float
    after: float
    shapes: int


def ways(shape: Shape) -> list[Way]:
    """The ways of a convolution that are timed: each form that fits, in as many parts as a candidate may ask for."""
    found = [PRODUCT] if is_product(shape, Constants()) else []
    found.append(DIRECT)
    for number in TIMED:
        below = max((other for other in TIMED if other < number), default=0)
        found += [Way(tile, number) for tile in TILES if below < parts(shape, tile, _MOST)]
    return found


def time_of(way: Way, times: Times) -> float:
    """Microseconds of a way; between timed numbers of parts, what lies between their logarithms; else infinity."""
    if way.name in times:
        return times[way.name]
    known = [number for number in sorted(TIMED) if Way(way.form, number).name in times]
    if not known or not known[0] < way.parts < known[-1]:
        return math.inf
    logs = [math.log(times[Way(way.form, number).name]) for number in known]
    return float(np.exp(np.interp(math.log(way.parts), np.log(known), logs)))


def fitted(times: Mapping[Shape, Times], present: Constants) -> Fit | None:
    """The constants with the least mean; of those that differ by noise, the nearest to the present ones.

    The shapes are those whose present way was timed. None where there are no such shapes.
    """
    known = {shape: found for shape, found in times.items() if math.isfinite(time_of(way_of(shape, present), found))}
    if not known:
        return None
    of_tiles = _candidates(present, enough=ENOUGH, part=PART, most_parts=MOST_PARTS)
    of_forms = _candidates(present, few=FEW, short=SHORT, many=MANY)
    by_tile = np.array([[_loss(tiles(shape, each), found) for shape, found in known.items()] for each in of_tiles])
    scores = {}
    for each in of_forms:
        others = [_other_loss(shape, each, found) for shape, found in known.items()]
        means = np.where(np.isnan(others), by_tile, others).mean(axis=1)
        for tile_constants, mean in zip(of_tiles, means, strict=True):
            scores[_joined(tile_constants, each)] = float(mean)
    least = min(scores.values())
    nearest = min(
        (each for each, score in scores.items() if score <= least + NOISE),
        key=lambda each: (_distance(each, present), scores[each]),
    )
    return Fit(nearest, math.exp(scores[present]), math.exp(scores[nearest]), len(known))


def _candidates(present: Constants, **values: Sequence[int]) -> list[Constants]:
    """The present constants with some of them replaced, in every combination."""
    facts = asdict(present)
    grids = [sorted({facts[name], *numbers}) for name, numbers in values.items()]
    return [Constants(**facts | dict(zip(values, each, strict=True))) for each in itertools.product(*grids)]


def _joined(of_tiles: Constants, of_forms: Constants) -> Constants:
    """The constants for tiles of one, and those for other forms of the other."""
    return Constants(of_tiles.enough, of_tiles.part, of_tiles.most_parts, of_forms.few, of_forms.short, of_forms.many)


def _loss(way: Way, times: Times) -> float:
    """The logarithm of a way's time as a part of the fastest one's."""
    return math.log(time_of(way, times) / min(times.values()))


def _other_loss(shape: Shape, constants: Constants, times: Times) -> float:
    """The same of what is not computed tile by tile; not a number where the convolution is."""
    if is_product(shape, constants):
        return _loss(PRODUCT, times)
    return _loss(DIRECT, times) if is_direct(shape, constants) else math.nan


def _distance(constants: Constants, present: Constants) -> float:
    """How far constants are from the present ones, as doublings."""
    pairs = zip(asdict(constants).values(), asdict(present).values(), strict=True)
    return sum(abs(math.log2(one / other)) for one, other in pairs)


def source(constants: Constants) -> list[str]:
    """The lines for `way.rs`."""
    return [
        f"const {field.name.upper()}: usize = {_number(getattr(constants, field.name))};" for field in fields(Constants)
    ]


def _number(value: int) -> str:
    """A number as the file has it: large powers of two as shifts."""
    is_power = value >= 1 << 14 and value & (value - 1) == 0
    return f"1 << {value.bit_length() - 1}" if is_power else str(value)
