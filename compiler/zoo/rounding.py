"""The rounding errors of a model's outputs, compared with onnxruntime's, as facts.

Double precision is the yardstick: `error_percent` has the error of each output in percent of onnxruntime's
(`compiler.accuracy.yardstick`), over all cases and of the optimized plan. A model without a form in double precision,
such as a quantized model, has the reference noise as its yardstick: the numbers are then the difference from
onnxruntime's result, in percent of the difference between its results with and without optimizations. The fact
`yardstick` says which of the two it was.

An error depends on the kernels of a processor. `error_at_most` therefore has bounds, which hold at every level: only a
larger error is a drift. A new bound leaves half of the error as a margin, or twice the error for an output of few
elements, whose error is a matter of chance.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.zoo.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from compiler.accuracy.verify import Given
    from compiler.accuracy.yardstick import Squares
    from compiler.zoo.facts import Fact

__all__ = ["AT_MOST", "PERCENT", "Rounding", "changed_errors", "facts_of_roundings", "kept_bounds", "rounding_of"]

PERCENT, AT_MOST, YARDSTICK = "error_percent", "error_at_most", "yardstick"
"""The names of the facts."""

_FEW, _MARGIN, _MARGIN_OF_FEW = 64, 1.5, 3.0
"""An output of fewer elements gets the larger margin."""
_LEAST, _LEAST_OF_FEW = 150, 300
"""The smallest bounds in percent."""
_MOST_SLACK = 3
"""A bound of more than this multiple of the bound for a new measurement does not stay."""


@dataclass(frozen=True)
class Rounding:
    """The squares of the errors of a case's outputs by name. `is_double` says that double precision measured them."""

    is_double: bool
    outputs: Mapping[str, Squares]


def rounding_of(given: Given, found: Mapping[str, Any], random: Collection[str]) -> Rounding:
    """The rounding errors of a plan's outputs for a case, without integers and random numbers."""
    from compiler.accuracy.yardstick import squares_of

    exact = given.exact
    true, other = (given.expected, given.plain) if exact is None else (exact, given.expected)
    arrays = {
        name: (true[name], array, other[name])
        for name, array in found.items()
        if name not in random and isinstance(array, np.ndarray) and name in true and name in other
    }
    squares = ((name, squares_of(*each)) for name, each in arrays.items())
    return Rounding(exact is not None, {name: each for name, each in squares if each is not None})


def facts_of_roundings(roundings: Iterable[Rounding]) -> Facts:
    """The facts of the errors of all cases. If only some cases ran in double precision, only these count."""
    cases = list(roundings)
    counted = [each for each in cases if each.is_double] or cases
    sums: dict[str, Squares] = {}
    for name, squares in (item for each in counted for item in each.outputs.items()):
        sums[name] = sums[name] + squares if name in sums else squares
    if not sums:
        return Facts({})
    yardstick = "double precision" if counted[0].is_double else "reference noise"
    if len(counted) < len(cases):
        yardstick += f" in {len(counted)} of {len(cases)} cases"
    percent = {name: max(round(100 * each.ratio), 1) for name, each in sums.items()}
    bounds = {name: _bound(percent[name], each.count) for name, each in sums.items()}
    return Facts({YARDSTICK: yardstick, PERCENT: percent, AT_MOST: bounds})


def changed_errors(
    before: Mapping[str, Fact], after: Mapping[str, Fact]
) -> Iterator[tuple[str, Mapping[str, int], Mapping[str, int]]]:
    """The errors that exceed their former bounds, new errors, and errors that are gone, with their bounds.

    Each item has a name, the values before, and the values after.
    """
    allowed, errors = _numbers(before, AT_MOST), _numbers(after, PERCENT)
    names = {name for name in {*allowed, *errors} if errors.get(name, 0) > allowed.get(name, 0) or name not in errors}
    for fact in (PERCENT, AT_MOST):
        values = [{name: each[name] for name in sorted(names & each.keys())} for each in _both(before, after, fact)]
        if names and values[0] != values[1]:
            yield fact, values[0], values[1]


def kept_bounds(before: Mapping[str, Fact], after: Mapping[str, Fact]) -> dict[str, Fact]:
    """The later facts, with the former errors and bounds of the outputs whose bounds still hold."""
    errors, bounds = ({**_numbers(after, fact)} for fact in (PERCENT, AT_MOST))
    for name, bound in _numbers(before, AT_MOST).items():
        if name in errors and errors[name] <= bound <= _MOST_SLACK * bounds[name]:
            errors[name], bounds[name] = _numbers(before, PERCENT).get(name, errors[name]), bound
    return {**after, **({PERCENT: errors, AT_MOST: bounds} if errors else {})}


def _both(before: Mapping[str, Fact], after: Mapping[str, Fact], fact: str) -> tuple[Mapping[str, int], ...]:
    return _numbers(before, fact), _numbers(after, fact)


def _numbers(facts: Mapping[str, Fact], name: str) -> Mapping[str, int]:
    found = facts.get(name, {})
    return found if isinstance(found, Mapping) else {}


def _bound(percent: int, count: int) -> int:
    """The bound for an error, rounded up to 1, 1½, 2, 3, 5 or 7 times a power of ten."""
    is_few = count < _FEW
    wanted = max(percent * (_MARGIN_OF_FEW if is_few else _MARGIN), _LEAST_OF_FEW if is_few else _LEAST)
    steps = (digit * int(10**power) // 10 for power in itertools.count() for digit in (10, 15, 20, 30, 50, 70))
    return next(step for step in steps if step >= wanted)
