"""The check of an engine's outputs: an engine whose outputs are wrong has no time."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.compare import TOLERANCES, compare
from compiler.accuracy.reference import Reference, ReferenceFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.accuracy.compare import Comparison
    from compiler.bench.engines import Case

__all__ = ["Answers"]

LOOSE = 100
"""The number of tolerances by which an output may differ from onnxruntime's, because other engines round more."""

NOISES = 4
"""The allowed multiple of the reference noise. In a quantized model, a rounding error can change a code."""


class Answers:
    """The outputs of a model in onnxruntime, for the check of other engines."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def check(self, engine: str, found: Mapping[str, Any]) -> None:
        """Compare an engine's outputs with onnxruntime's.

        Their dtypes may differ, and their shapes if the sizes are equal: MNN lacks some of both.

        Raises:
            ReferenceFailed: an output is wrong, or onnxruntime cannot run the model.
        """
        for name, array in self._expected.items():
            other = np.asarray(found[name])
            if other.size != array.size:
                raise ReferenceFailed(f"{engine}'s output {name} has shape {other.shape}, not {array.shape}")
            compared = _compared(name, array, other)
            if not compared.ok and compared.max_abs > NOISES * self._noise(name):
                raise ReferenceFailed(f"{engine}'s output {name} is wrong by {compared.max_abs:.3g}")

    @functools.cached_property
    def _reference(self) -> Reference:
        return Reference(self._case.known_model)

    @functools.cached_property
    def _expected(self) -> dict[str, Any]:
        return self._reference.run(self._case.inputs)

    @functools.cached_property
    def _unoptimized(self) -> dict[str, Any]:
        return self._reference.plain.run(self._case.inputs)

    def _noise(self, name: str) -> float:
        """The difference of onnxruntime's results with and without its optimizations."""
        return _compared(name, self._expected[name], self._unoptimized[name]).max_abs


def _compared(name: str, expected: Any, found: Any) -> Comparison:
    same_form = np.asarray(found).reshape(expected.shape).astype(expected.dtype)
    tolerance = max(LOOSE * TOLERANCES["float32"], TOLERANCES.get(expected.dtype.name, 0.0))
    return compare({name: expected}, {name: same_form}, tolerance).outputs[0]
