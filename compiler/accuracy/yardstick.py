"""Double precision as the yardstick for rounding errors: those of an output beside those of a reference.

Two rules make the errors of an output *alike* to those of the reference, and both must hold:

- Both lists of errors are sorted, and compared from the largest to the smallest. Each error of the output must be at
  most three times the reference's, or within the tolerance of the whole output. The largest must be at least a
  thirtieth of the reference's. One large error of the reference therefore excuses only one error of the output.
- Each error of the output must be within the tolerance of the element, or at most three times the noise of the element:
  the largest error of the reference in all elements with a similar or smaller scale (`compiler.accuracy.slices`). An
  error of a coordinate therefore excuses no error of a score.

Among few elements, the order of the errors and the places of the large ones are a matter of chance. If the rules do not
hold, the errors of the reference for inputs that differ by one rounding (`moved`) may stand in for its own errors, in
both rules: nobody can expect less of an element. They excuse no error of a score that such inputs do not change, and no
error of more than three times the reference's own largest one.

The *ratio* of an output is its error divided by the reference's. Here, an error is the root of the mean square of all
elements' errors, each divided by the scale of its element.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.compare import TOLERANCES, tolerances
from compiler.accuracy.slices import Slices, magnitudes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["LEAST_ERROR", "MOST_ERROR", "ROUNDING", "Squares", "errors_are_alike", "moved", "squares_of"]

MOST_ERROR = 3.0
"""The largest ratio of an equal output's error to the reference's, both against double precision."""

LEAST_ERROR = 1 / 30
"""The smallest ratio. A smaller one means that the reference's error is not rounding alone."""

ROUNDING = 2.0**-23
"""The relative distance of neighboring numbers in single precision. A smaller difference is no error."""

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Squares:
    """The sums of the squares of an output's and of the reference's errors, and the number of elements."""

    ours: float
    theirs: float
    count: int

    def __add__(self, other: Squares) -> Squares:
        return Squares(self.ours + other.ours, self.theirs + other.theirs, self.count + other.count)

    @property
    def ratio(self) -> float:
        """The output's error ÷ the reference's; an error of less than one rounding counts as one."""
        ours, theirs = (max(math.sqrt(each / self.count), ROUNDING) for each in (self.ours, self.theirs))
        return ours / theirs


def errors_are_alike(
    exact: Any, found: Any, expected: Any, tolerance: float | None = None, others: Callable[[], Sequence[Any]] = tuple
) -> bool:
    """Whether the errors of an output and of the reference against double precision have similar sizes.

    `tolerance` replaces the tolerance of the dtype. `others` computes the reference's outputs for inputs that differ by
    one rounding (`moved`). The function calls it only if the decision depends on them.
    """
    arrays = _measured(exact, found, expected)
    if arrays is None:
        return False
    mine, theirs = (np.abs(each - arrays[0]) for each in arrays[1:])
    allowed = tolerances(np.asarray(expected), tolerance)
    whole = float(tolerances(np.asarray(expected), tolerance, sliced=False).max())
    slices = Slices(magnitudes(np.asarray(expected)))

    def is_explained(errors: Sequence[_Array]) -> bool:
        in_order = np.maximum.reduce([np.sort(each, axis=None) for each in errors])
        noise = slices.largest(np.maximum.reduce(errors))
        return bool(
            (np.sort(mine, axis=None) <= np.maximum(MOST_ERROR * in_order, whole)).all()
            and (mine <= np.maximum(MOST_ERROR * noise, allowed)).all()
        )

    largest = theirs.max()
    if not LEAST_ERROR * largest <= mine.max() <= max(MOST_ERROR * largest, whole):
        return False
    if is_explained([theirs]):
        return True
    measured = (_measured(exact, other, expected) for other in others())
    errors = [np.minimum(np.abs(each[1] - each[0]), largest) for each in measured if each is not None]
    return is_explained([theirs, *errors])


def moved(inputs: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The inputs with each finite float, except 0, replaced by one of its two neighbors, at random.

    A zero is exact: it may be an entry of a mask. Equal seeds give equal inputs.
    """
    generator = np.random.default_rng(seed)
    return {name: _moved(value, generator) for name, value in inputs.items()}


def _moved(value: Any, generator: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray) or not np.issubdtype(value.dtype, np.floating):
        return value
    toward = np.where(generator.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
    return np.where(np.isfinite(value) & (value != 0), np.nextafter(value, toward), value)


def squares_of(exact: Any, found: Any, expected: Any) -> Squares | None:
    """The squares of the errors of an output and of the reference; `None` for outputs without rounding errors.

    Integers have none, and neither have outputs that are not finite.
    """
    arrays = _measured(exact, found, expected)
    if arrays is None:
        return None
    scale = np.maximum(Slices(np.abs(arrays[0])).scale, np.finfo(np.float32).tiny)
    mine, theirs = (float(np.square((each - arrays[0]) / scale).sum()) for each in arrays[1:])
    return Squares(mine, theirs, arrays[0].size)


def _measured(exact: Any, found: Any, expected: Any) -> tuple[_Array, _Array, _Array] | None:
    """The arrays in double precision, if all are finite floats of one shape that is not empty; `found` is rounded."""
    arrays = [np.asarray(each) for each in (exact, found, expected)]
    if any(array.dtype == object for array in arrays) or len({array.shape for array in arrays}) != 1:
        return None
    if any(array.dtype.name not in TOLERANCES for array in arrays) or not arrays[0].size:
        return None
    true, one, other = (array.astype(np.float64) for array in arrays)
    return (true, one, other) if all(np.isfinite(each).all() for each in (true, one, other)) else None
