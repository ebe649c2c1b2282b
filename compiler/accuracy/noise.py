"""The reference noise: the difference of onnxruntime's results with and without its optimizations.

It is the yardstick for a model without a form in double precision, such as a quantized model. An output equals
onnxruntime's if each element is within its tolerance of one of the two results. The output is uncertain if each element
is within its noise of one result. The noise of an element is the largest difference of both results in all elements
with a similar or smaller scale (`compiler.accuracy.slices`). A difference below the tolerance is no noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.compare import TOLERANCES, tolerances
from compiler.accuracy.slices import Slices, magnitudes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.accuracy.compare import Comparison, Report

__all__ = ["with_noise"]

_Array = np.ndarray[Any, Any]
_Values = Mapping[str, Any]


def with_noise(report: Report, found: _Values, results: Sequence[_Values], pair: tuple[_Values, _Values]) -> Report:
    """The comparisons of outputs with their reference noise, the difference of a pair of results.

    `results` are those that the outputs may equal, the expected one first. Only floats have noise: the comparison of
    other outputs, and of outputs without the same dtype and shape in all results, stays unchanged.
    """
    every = [dict(_elements(values)) for values in (*results, *pair, found)]
    return replace(
        report,
        outputs=tuple(
            _with_noise(each, [values[each.name] for values in every])
            if all(each.name in values for values in every)
            else each
            for each in report.outputs
        ),
    )


def _elements(outputs: _Values) -> Iterator[tuple[str, Any]]:
    """The arrays of outputs with the names of their comparisons: `y`, or `y[0]` and so on for a sequence."""
    for name, value in outputs.items():
        if isinstance(value, list):
            yield from _elements({f"{name}[{index}]": each for index, each in enumerate(value)})
        else:
            yield name, value


def _with_noise(output: Comparison, values: Sequence[Any]) -> Comparison:
    """The comparison of an output. The last three values are the pair and the output, and all others are results."""
    arrays = [np.asarray(each) for each in values]
    kinds = {(array.dtype, array.shape) for array in arrays}
    if output.problem or output.dtype not in TOLERANCES or len(kinds) != 1 or not arrays[0].size:
        return output
    *results, one, other, found = arrays
    allowed, apart = tolerances(results[0]), _distances(one, other)
    noise = Slices(magnitudes(results[0])).largest(apart)
    most = np.where(noise > allowed, noise + allowed, allowed)
    distances = [_distances(found, each) for each in results]
    return replace(
        output,
        reference_noise=float(apart.max()),
        nearest=min(float(each.max()) for each in distances),
        equals_plain=any((each <= allowed).all() for each in distances),
        within_noise=any((each <= most).all() for each in distances),
    )


def _distances(one: _Array, other: _Array) -> _Array:
    """The distance of each element. Where only one element is not finite, or the two are not equal, it is infinite."""
    with np.errstate(invalid="ignore"):  # NumPy warns of signaling NaNs, and of the difference of two infinities
        a, b = one.astype(np.float64), other.astype(np.float64)
        are_same = (a == b) | (np.isnan(a) & np.isnan(b))
        found: _Array = np.where(are_same, 0.0, np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf))
    return found
