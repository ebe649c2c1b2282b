"""Does a plan give what onnxruntime gives? Compares outputs, by the worst difference against a stated tolerance.

Rounding errors grow on their way through a model, in some (quantised ones above all, where they decide which step is
taken) so far that onnxruntime's answer itself is further from the true one than the tolerance. That is measured: its
answers with and without its own optimisations, `doubt` apart, are equally good ones; twice their distance is allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.pipeline import compile
from compiler.reference import Reference
from compiler.samples import random_inputs
from compiler.session import load

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    import onnx

    from compiler.plan import Plan

__all__ = ["TOLERANCES", "Comparison", "Report", "compare", "compare_with_reference", "verify"]

TOLERANCES = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
"""dtype → the difference allowed, as a part of the output's scale; all other dtypes have to be equal."""

SMALLEST_SCALE = 1e-3


@dataclass(frozen=True)
class Comparison:
    """How far one output is from what was expected.

    `max_abs`, `max_rel` and `max_ulp` are the worst differences, absolute, relative to the expected element, and in
    units in the last place. `allowed` is the tolerance times the output's scale, the largest magnitude expected; or,
    where it is more, twice the `doubt`: how far onnxruntime is from itself, measured where the tolerance does not do.
    `problem` says why the outputs cannot be compared (dtype, shape, NaN), else it is empty.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int = 0
    allowed: float = 0.0
    doubt: float = 0.0
    problem: str = ""

    @property
    def widened(self) -> bool:
        """Whether more than the tolerance is allowed, because of the doubt."""
        return 0 < self.allowed <= 2 * self.doubt

    @property
    def ok(self) -> bool:
        """Whether the output is within what is allowed."""
        return not self.problem and self.max_abs <= self.allowed


@dataclass(frozen=True)
class Report:
    """The comparison of every output."""

    outputs: tuple[Comparison, ...]

    @property
    def ok(self) -> bool:
        """Whether every output is within its tolerance."""
        return all(output.ok for output in self.outputs)

    @property
    def worst(self) -> float:
        """The largest difference of an output, as a part of what is allowed; infinite where it cannot be compared."""
        return max((_share(output) for output in self.outputs), default=0.0)

    @property
    def doubt(self) -> float:
        """The largest doubt that widened a tolerance; zero where none did."""
        return max((output.doubt for output in self.outputs if output.widened), default=0.0)


def verify(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto,
    plan: Plan | str | os.PathLike[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    device: str = "cpu",
    *,
    threads: int | None = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
) -> Report:
    """Run `model` in onnxruntime and `plan` (or the model, compiled now) on the same inputs, and compare the outputs.

    Without `inputs`, random ones of the declared shapes are made from `seed`, with `dims` for the symbolic dimensions.
    `tolerance` takes the place of that of the dtype (`TOLERANCES`), and of any doubt. Needs onnxruntime.

    Raises:
        CompileError: the model is refused.
        ReferenceMissing, ReferenceFailed: onnxruntime is not installed, or cannot run the model.
    """
    session = load(compile(model) if plan is None else plan, device, threads)
    given = random_inputs(session.inputs, dims or {}, seed) if inputs is None else inputs
    return compare_with_reference(Reference(model), given, session.run(given), tolerance)


def compare_with_reference(
    reference: Reference,
    inputs: Mapping[str, Any],
    found: Mapping[str, Any],
    tolerance: float | None = None,
) -> Report:
    """Compare outputs with onnxruntime's; where they differ and no tolerance is given, its doubt is measured.

    Raises:
        ReferenceFailed: onnxruntime cannot run the model.
    """
    expected = reference.run(inputs)
    report = compare(expected, found, tolerance)
    if report.ok or tolerance is not None:
        return report
    doubts = compare(expected, reference.plain.run(inputs))
    pairs = zip(report.outputs, doubts.outputs, strict=True)
    return Report(tuple(_with_doubt(output, doubt.max_abs) for output, doubt in pairs))


def compare(expected: Mapping[str, Any], found: Mapping[str, Any], tolerance: float | None = None) -> Report:
    """Compare outputs by name, with `tolerance` in place of the dtype's own where one is given."""
    comparisons: list[Comparison] = []
    for name, value in expected.items():
        if name not in found:
            comparisons.append(Comparison(name, "", (), problem="the plan has no such output"))
        else:
            comparisons.extend(_compare_value(name, value, found[name], tolerance))
    return Report(tuple(comparisons))


def _with_doubt(output: Comparison, doubt: float) -> Comparison:
    """Integers, which have no tolerance, stay as they are."""
    if output.dtype not in TOLERANCES:
        return output
    return replace(output, doubt=doubt, allowed=max(output.allowed, 2 * doubt))


def _share(output: Comparison) -> float:
    if output.problem:
        return float("inf")
    return 0.0 if output.max_abs == 0 else output.max_abs / output.allowed if output.allowed else float("inf")


def _compare_value(name: str, expected: Any, found: Any, tolerance: float | None) -> list[Comparison]:
    """One output; the elements of a sequence one by one."""
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [Comparison(name, "sequence", (len(expected),), problem="expected a sequence of another length")]
        pairs = enumerate(zip(expected, found, strict=True))
        return [each for i, (a, b) in pairs for each in _compare_value(f"{name}[{i}]", a, b, tolerance)]
    if expected is None or found is None:
        return [Comparison(name, "optional", (), problem="" if expected is found else "one of the two is empty")]
    return [_compare_arrays(name, np.asarray(expected), np.asarray(found), tolerance)]


def _compare_arrays(
    name: str, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any], tolerance: float | None
) -> Comparison:
    dtype, shape = expected.dtype.name, expected.shape
    if found.dtype != expected.dtype:
        return Comparison(name, dtype, shape, problem=f"found dtype {found.dtype.name}")
    if found.shape != shape:
        return Comparison(name, dtype, shape, problem=f"found shape {list(found.shape)}")
    if dtype not in TOLERANCES:
        return _compare_exactly(name, expected, found)
    special = ~np.isfinite(expected.astype(np.float64)) | ~np.isfinite(found.astype(np.float64))
    if not np.array_equal(expected[special].astype(np.float64), found[special].astype(np.float64), equal_nan=True):
        return Comparison(name, dtype, shape, problem="NaN or infinity in other places")
    a, b = expected[~special], found[~special]
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(wide_a - wide_b)
    scale = max(_largest(np.abs(wide_a)), SMALLEST_SCALE)
    relative = np.divide(difference, np.abs(wide_a), out=np.zeros_like(difference), where=wide_a != 0)
    allowed = scale * (TOLERANCES[dtype] if tolerance is None else tolerance)
    ulp = int(_largest(np.abs(_ordered(a) - _ordered(b)).astype(np.float64)))
    return Comparison(name, dtype, shape, _largest(difference), _largest(relative), ulp, allowed)


def _compare_exactly(name: str, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> Comparison:
    different = int(np.sum(expected != found))
    problem = f"{different} of {expected.size} elements differ" if different else ""
    return Comparison(name, expected.dtype.name, expected.shape, problem=problem)


def _ordered(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats as integers that are in the same order, neighbours one apart."""
    bits = array.view(np.dtype(f"int{8 * array.dtype.itemsize}")).astype(np.int64)
    return np.where(bits < 0, np.int64(-(2 ** (8 * array.dtype.itemsize - 1))) - bits, bits)


def _largest(values: np.ndarray[Any, Any]) -> float:
    return float(values.max()) if values.size else 0.0
