"""Fits the limits in `constants.rs` to measured times, so that plans choose the fastest forms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np

from gpu.forms import DIRECT, PRODUCT, TILES, Constants, Form, cost, form_of, is_direct, is_product, parts, tiles
from gpu.shapes import Shape

Times = Mapping[str, float]
"""Name of a form → microseconds of one convolution."""

ENOUGH = (64, 96, 128, 192, 256, 384, 512, 768, 1024)
PART = (32, 64, 128, 256, 512)
MOST_PARTS = (4, 8, 16, 32)
FEW = (4, 8, 16, 24, 32, 64)
SHORT = (16, 32, 64, 128, 256, 512)
MANY = tuple(1 << bits for bits in range(14, 25, 2))
"""The candidates for each constant."""
TIMED = (1, 4, 32, 2, 8)
"""The timed numbers of parts, in this order. Times for numbers between them are interpolated."""
NOISE = 1e-3
"""The least improvement of the logarithm of the mean for which the constants change."""
_MOST = Constants(max(ENOUGH), min(PART), max(MOST_PARTS))


@dataclass(frozen=True)
class Fit:
    """New constants, and the geometric mean of a chosen form's time ÷ the fastest form's time, before and after."""

    constants: Constants
    before: float
    after: float
    shapes: int


def forms(shape: Shape) -> list[Form]:
    """The timed forms of a convolution: each possible kind, with every number of parts that a candidate may choose."""
    found = [PRODUCT] if is_product(shape, Constants()) else []
    found.append(DIRECT)
    for number in TIMED:
        below = max((other for other in TIMED if other < number), default=0)
        found += [Form(tile, number) for tile in TILES if below < parts(shape, tile, _MOST)]
    return found


def time_of(form: Form, times: Times) -> float:
    """Microseconds of a form, interpolated by logarithms between timed numbers of parts; infinity if unknown."""
    if form.name in times:
        return times[form.name]
    known = [number for number in sorted(TIMED) if Form(form.kind, number).name in times]
    if not known or not known[0] < form.parts < known[-1]:
        return math.inf
    logs = [math.log(times[Form(form.kind, number).name]) for number in known]
    return float(np.exp(np.interp(math.log(form.parts), np.log(known), logs)))


def fitted(times: Mapping[Shape, Times], present: Constants) -> Fit | None:
    """The constants with the smallest mean; among those that differ only by noise, the closest to `present`.

    Uses the shapes whose present form was timed. The result is `None` without such shapes.
    """
    known = {shape: found for shape, found in times.items() if math.isfinite(time_of(form_of(shape, present), found))}
    if not known:
        return None
    of_tiles = _candidates(present, enough=ENOUGH, part=PART, most_parts=MOST_PARTS)
    of_forms = _candidates(present, few=FEW, short=SHORT, many=MANY)
    chosen = [[tiles(shape, each) for shape in known] for each in of_tiles]
    by_tile = np.array([[_loss(form, known[shape]) for shape, form in zip(known, row, strict=True)] for row in chosen])
    costs = np.array([[cost(shape, form) for shape, form in zip(known, row, strict=True)] for row in chosen])
    scores = {}
    for each in of_forms:
        other_costs, others = zip(*(_other(shape, each, found) for shape, found in known.items()), strict=True)
        means = np.where(np.array(other_costs) <= costs, others, by_tile).mean(axis=1)
        for tile_constants, mean in zip(of_tiles, means, strict=True):
            scores[_joined(tile_constants, each)] = float(mean)
    least = min(scores.values())
    nearest = min(
        (each for each, score in scores.items() if score <= least + NOISE),
        key=lambda each: (_distance(each, present), scores[each]),
    )
    return Fit(nearest, math.exp(scores[present]), math.exp(scores[nearest]), len(known))


def _candidates(present: Constants, **values: Sequence[int]) -> list[Constants]:
    """The present constants with every combination of the values for some of them."""
    facts = asdict(present)
    grids = [sorted({facts[name], *numbers}) for name, numbers in values.items()]
    return [Constants(**facts | dict(zip(values, each, strict=True))) for each in itertools.product(*grids)]


def _joined(of_tiles: Constants, of_forms: Constants) -> Constants:
    """The constants for tiles from `of_tiles`, and those for other forms from `of_forms`."""
    return Constants(of_tiles.enough, of_tiles.part, of_tiles.most_parts, of_forms.few, of_forms.short, of_forms.many)


def _loss(form: Form, times: Times) -> float:
    """The logarithm of a form's time ÷ the fastest form's time."""
    return math.log(time_of(form, times) / min(times.values()))


def _other(shape: Shape, constants: Constants, times: Times) -> tuple[float, float]:
    """The expected time of the fastest form without tiles, and its loss; infinity if there is none."""
    found = [PRODUCT] if is_product(shape, constants) else []
    found += [DIRECT] if is_direct(shape, constants) else []
    if not found:
        return math.inf, math.inf
    form = min(found, key=lambda form: cost(shape, form))
    return cost(shape, form), _loss(form, times)


def _distance(constants: Constants, present: Constants) -> float:
    """The distance of constants from the present ones, in doublings."""
    pairs = zip(asdict(constants).values(), asdict(present).values(), strict=True)
    return sum(abs(math.log2(one / other)) for one, other in pairs)


def source(constants: Constants) -> list[str]:
    """The lines for `constants.rs`."""
    values = {field.name.upper(): _number(getattr(constants, field.name)) for field in fields(Constants)}
    return [f"pub(super) const {name}: usize = {value};" for name, value in values.items()]


def _number(value: int) -> str:
    """A number as in the file, with large powers of two as shifts."""
    is_power = value >= 1 << 14 and value & (value - 1) == 0
    return f"1 << {value.bit_length() - 1}" if is_power else str(value)
