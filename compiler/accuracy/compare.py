"""How far outputs are from those of a reference, and what that says.

An output equals onnxruntime's where it differs by no more than the tolerance. Rounding errors grow on their way through
a model, and how far depends on the processor's kernels. Beyond the tolerance, double precision is the yardstick: an
output also equals onnxruntime's where its errors against double precision are about as large as onnxruntime's own,
element for element in the order of their size. A difference of more elements than rounding reaches makes them larger.

A model that quantizes has no form in double precision. There a rounding error decides which code is taken, and
onnxruntime's answers with and without its own optimizations, the *reference noise* apart, are equally good ones. An
output equals onnxruntime's where it is within the tolerance of one of them. An output that is as near to one of them as
they are to each other is not equal, but nothing speaks against it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = [
    "MOST_ERROR",
    "TOLERANCES",
    "Comparison",
    "Report",
    "Verdict",
    "compare",
    "counted",
    "errors_are_alike",
    "worst_of",
]

TOLERANCES = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
"""dtype → the difference allowed, as a part of the output's scale; all other dtypes have to be equal."""

MOST_ERROR = 3.0
"""How many times onnxruntime's error against double precision the error of an equal output may be."""

LEAST_ERROR = 1 / 30
"""The same from below: an onnxruntime that is further off than this does not differ by rounding alone."""

Verdict = Literal["equal", "random", "uncertain", "different", "refused", "failed"]
"""From the best to the worst. Of models too: `refused` by the compiler, and `failed`, with nothing to compare."""

_SAID: Mapping[Verdict, tuple[str, str]] = {
    "equal": ("equals onnxruntime's", "equal onnxruntime's"),
    "random": (
        "is of random numbers, of which only dtype and shape were compared",
        "are of random numbers, of which only dtype and shape were compared",
    ),
    "uncertain": (
        "differs from it by less than it differs from itself",
        "differ from it by less than it differs from itself",
    ),
    "different": ("is not equal", "are not equal"),
    "refused": ("is refused", "are refused"),
    "failed": ("could not be checked", "could not be checked"),
}


@dataclass(frozen=True)
class Comparison:
    """How far one output is from what was expected.

    `max_abs`, `max_rel` and `max_ulp` are the worst differences, absolute, relative to the expected element, and in
    units in the last place. `allowed` is the tolerance times the output's scale, the largest magnitude expected.
    `reference_noise` is how far onnxruntime is from itself, and `nearest` how far the output is from the nearer of its
    two answers; `error` and `reference_error` are how far the output and onnxruntime's are from what the model gives in
    double precision: measured where the tolerance does not do, and where they can be. `strict` says that the
    tolerance was stated, and that nothing else makes the output equal; `rounds_alike` that the errors of both are of
    one size (`errors_are_alike`). `note` says in words how values differ, `problem` why there are no values to compare
    (dtype, shape).
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float = 0.0
    max_rel: float = 0.0
    max_ulp: int = 0
    allowed: float = 0.0
    reference_noise: float = 0.0
    nearest: float = float("inf")
    error: float | None = None
    reference_error: float | None = None
    is_random: bool = False
    strict: bool = False
    rounds_alike: bool = False
    note: str = ""
    problem: str = ""

    @property
    def verdict(self) -> Verdict:
        """The judgment on the output.

        `equal` within the tolerance of one of onnxruntime's answers, or with an error like onnxruntime's; `random`
        where it need not be so; `uncertain` within the reference noise; or `different`.
        """
        if self.problem:
            return "different"
        if self.max_abs <= self.allowed:
            return "equal"
        if self.is_random:
            return "random"
        if self.nearest <= self.allowed or (self.rounds_alike and not self.strict):
            return "equal"
        is_noisy = self.reference_noise > self.allowed
        is_near = self.nearest <= self.reference_noise + self.allowed
        return "uncertain" if is_noisy and is_near else "different"

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the output."""
        return self.verdict != "different"

    @property
    def share(self) -> float:
        """The difference as a part of what is allowed."""
        if self.problem:
            return float("inf")
        return 0.0 if self.max_abs == 0 else self.max_abs / self.allowed if self.allowed else float("inf")


@dataclass(frozen=True)
class Report:
    """The comparison of every output."""

    outputs: tuple[Comparison, ...]
    device: str = "cpu"
    """Where the plan ran."""
    note: str = ""
    """How onnxruntime's run differs from what the model's file says, and why; empty where it does not."""

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against any output; see `equal`."""
        return all(output.ok for output in self.outputs)

    @property
    def equal(self) -> bool:
        """Whether every output is equal to the reference's."""
        return all(output.verdict == "equal" for output in self.outputs)

    @property
    def worst(self) -> float:
        """The largest difference of an output, as a part of what is allowed; infinite where it cannot be compared."""
        return max((output.share for output in self.outputs if output.verdict != "random"), default=0.0)

    @property
    def summary(self) -> str:
        """How many outputs have which verdict, in words."""
        return counted([output.verdict for output in self.outputs], "output")


def errors_are_alike(exact: Any, found: Any, expected: Any, allowed: float) -> bool:
    """Whether an output and onnxruntime's are about as far from what the model gives in double precision.

    Both errors are sorted, and compared from the largest to the smallest: each of the output's is at most `MOST_ERROR`
    times the one of onnxruntime, or `allowed`; and the largest is at least `LEAST_ERROR` times onnxruntime's. So one
    element of a large error excuses no other.
    """
    arrays = [np.asarray(each) for each in (exact, found, expected)]
    if any(array.dtype == object for array in arrays) or len({array.shape for array in arrays}) != 1:
        return False
    true, one, other = (array.astype(np.float64).ravel() for array in arrays)
    if (
        not true.size
        or arrays[1].dtype.name not in TOLERANCES
        or not all(np.isfinite(each).all() for each in (true, one, other))
    ):
        return False
    mine, theirs = np.sort(np.abs(one - true)), np.sort(np.abs(other - true))
    return bool((mine <= np.maximum(MOST_ERROR * theirs, allowed)).all() and mine[-1] >= LEAST_ERROR * theirs[-1])


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on all together."""
    return max(verdicts, key=get_args(Verdict).index, default="equal")


def counted(verdicts: Sequence[Verdict], what: str) -> str:
    """`2 of 3 outputs equal onnxruntime's; 1 is not equal`."""
    counts = {verdict: verdicts.count(verdict) for verdict in _SAID}
    equal, is_one = counts.pop("equal"), len(verdicts) == 1
    first = f"{equal} of {len(verdicts)} {what}{'' if is_one else 's'} {_SAID['equal'][equal != 1 and not is_one]}"
    return "; ".join([first, *(f"{count} {_SAID[verdict][count != 1]}" for verdict, count in counts.items() if count)])


def compare(
    expected: Mapping[str, Any],
    found: Mapping[str, Any],
    tolerance: float | None = None,
    random: Collection[str] = (),
) -> Report:
    """Compare outputs by name, with `tolerance` in place of the dtype's own where one is given.

    `random` are the names of those that are of random numbers.
    """
    comparisons: list[Comparison] = []
    for name, value in expected.items():
        if name not in found:
            comparisons.append(Comparison(name, "", (), problem="the plan has no such output"))
        else:
            compared = _compare_value(name, value, found[name], tolerance)
            comparisons.extend(
                replace(each, is_random=name in random, strict=tolerance is not None) for each in compared
            )
    return Report(tuple(comparisons))


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
    dtype, shape = "string" if expected.dtype == object else expected.dtype.name, expected.shape
    if found.dtype != expected.dtype:
        return Comparison(name, dtype, shape, problem=f"found dtype {found.dtype.name}")
    if found.shape != shape:
        return Comparison(name, dtype, shape, problem=f"found shape {list(found.shape)}")
    if dtype not in TOLERANCES:
        return _compare_exactly(name, expected, found)
    special = ~np.isfinite(expected.astype(np.float64)) | ~np.isfinite(found.astype(np.float64))
    if not np.array_equal(expected[special].astype(np.float64), found[special].astype(np.float64), equal_nan=True):
        return Comparison(name, dtype, shape, float("inf"), note="NaN or infinity in other places")
    a, b = expected[~special], found[~special]
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    difference = np.abs(wide_a - wide_b)
    scale = _scale(wide_a, expected.dtype)
    relative = np.divide(difference, np.abs(wide_a), out=np.zeros_like(difference), where=wide_a != 0)
    allowed = scale * (TOLERANCES[dtype] if tolerance is None else tolerance)
    ulp = int(_largest(np.abs(_ordered(a) - _ordered(b)).astype(np.float64)))
    return Comparison(name, dtype, shape, _largest(difference), _largest(relative), ulp, allowed)


def _compare_exactly(name: str, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> Comparison:
    """Whole numbers, booleans, strings, and floats of 8 bits and less."""
    dtype, shape, differs = expected.dtype.name, expected.shape, np.asarray(expected != found)
    if expected.dtype != object:
        a, b = expected.astype(np.float64), found.astype(np.float64)
        differs &= ~(np.isnan(a) & np.isnan(b))
    if not differs.any():
        return Comparison(name, dtype, shape)
    distance = 0.0 if expected.dtype == object else _largest(np.nan_to_num(np.abs(a - b)[differs], nan=np.inf))
    # Strings have no distance, and that of large integers may be lost in rounding: they differ all the same.
    note = f"{differs.sum()} of {expected.size} elements differ"
    return Comparison(name, dtype, shape, distance or float("inf"), note=note)


def _scale(values: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> float:
    """The largest magnitude, or the least that the dtype holds in full precision, below which it has no such digits."""
    if not values.any():
        return 0.0
    smallest: Any = ml_dtypes.finfo(dtype).smallest_normal  # type: ignore[no-untyped-call]
    return max(_largest(np.abs(values)), float(smallest))


def _ordered(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats as integers that are in the same order, neighbors one apart."""
    bits = array.view(np.dtype(f"int{8 * array.dtype.itemsize}")).astype(np.int64)
    return np.where(bits < 0, np.int64(-(2 ** (8 * array.dtype.itemsize - 1))) - bits, bits)


def _largest(values: np.ndarray[Any, Any]) -> float:
    return float(values.max()) if values.size else 0.0
