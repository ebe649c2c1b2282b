"""Comparison of outputs with those of a reference.

An output equals onnxruntime's if each element differs by no more than its tolerance. The tolerance is a fraction of
the element's scale (`compiler.accuracy.slices`), plus one rounding of the output's largest element. Rounding errors
grow through a model, and their size depends on the processor's kernels. Beyond the tolerance, double precision decides:
an output also equals onnxruntime's if its errors against double precision are about as large as onnxruntime's own
(`compiler.accuracy.yardstick`).

A model that quantizes has no form in double precision. A rounding error can change a code there, and onnxruntime's
results with and without its own optimizations are equally good. They differ by the *reference noise*. An output equals
onnxruntime's if it is within the tolerance of one of them. If the reference noise is more than the tolerance, an output
that differs from one of them by at most their sum is uncertain.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import ml_dtypes
import numpy as np

from compiler.accuracy.slices import Slices, magnitudes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

__all__ = [
    "TOLERANCES",
    "Comparison",
    "Report",
    "Verdict",
    "compare",
    "counted",
    "tolerances",
    "worst_of",
]

TOLERANCES = {"float64": 1e-9, "float32": 1e-5, "float16": 2e-3, "bfloat16": 2e-2}
"""dtype → the allowed difference, as a fraction of the scale. Other dtypes must be equal."""

Verdict = Literal[
    "equal", "random", "uncertain", "different", "refused", "failed", "timed out", "out of memory", "crashed"
]
"""Verdicts from the best to the worst.

Models also have `refused` (by the compiler) and `failed` (no comparison). The last three are for models whose
process reached a limit or crashed.
"""

_SAID: Mapping[Verdict, tuple[str, str]] = {
    "equal": ("equals onnxruntime's", "equal onnxruntime's"),
    "random": (
        "is random, and only its dtype and shape were compared",
        "are random, and only their dtypes and shapes were compared",
    ),
    "uncertain": (
        "is uncertain: it differs by at most the reference noise plus the tolerance",
        "are uncertain: they differ by at most the reference noise plus the tolerance",
    ),
    "different": ("is not equal", "are not equal"),
    "refused": ("is refused", "are refused"),
    "failed": ("could not be checked", "could not be checked"),
    "timed out": ("timed out", "timed out"),
    "out of memory": ("ran out of memory", "ran out of memory"),
    "crashed": ("crashed", "crashed"),
}


@dataclass(frozen=True)
class Comparison:
    """The difference of one output from the expected one.

    `max_abs` is the difference of the worst element, and `allowed` its tolerance: the worst element is the one with the
    largest quotient of both. `max_rel` and `max_ulp` are the worst differences of all elements, relative to the
    expected element, and in units in the last place. `reference_noise` is the difference of onnxruntime's two results,
    and `nearest` the output's difference from the nearer one. `equals_plain` says that each element is within its
    tolerance of one of the two, and `within_noise` that each is within its noise (`compiler.accuracy.noise`). `error`
    and `reference_error` are the errors of the output and of onnxruntime's against double precision. They are measured
    beyond the tolerance, if the model has a form in double precision. `strict` says that the caller gave the tolerance,
    so that nothing else makes the output equal. `rounds_alike` says that both errors have similar sizes
    (`compiler.accuracy.yardstick`). `note` describes the difference in words. `problem` says why there are no values to
    compare (dtype, shape). `reference` says in words whose result the expected output is.
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
    equals_plain: bool = False
    within_noise: bool = False
    is_random: bool = False
    strict: bool = False
    rounds_alike: bool = False
    note: str = ""
    problem: str = ""
    reference: str = "onnxruntime's"

    @property
    def doubt(self) -> float:
        """The former name of `reference_noise`. It is deprecated."""
        warnings.warn("Comparison.doubt is deprecated: use reference_noise", DeprecationWarning, stacklevel=2)
        return self.reference_noise

    @property
    def verdict(self) -> Verdict:
        """The judgment on the output.

        `equal`: within the tolerance of one of onnxruntime's results, or with an error like onnxruntime's. `random`:
        random numbers. `uncertain`: within the reference noise plus the tolerance of one of onnxruntime's results,
        where the noise is more than the tolerance. `different`: none of these.
        """
        if self.problem:
            return "different"
        if self.max_abs <= self.allowed:
            return "equal"
        if self.is_random:
            return "random"
        if self.equals_plain or (self.rounds_alike and not self.strict):
            return "equal"
        return "uncertain" if self.within_noise else "different"

    @property
    def ok(self) -> bool:
        """Whether the output is not different."""
        return self.verdict != "different"

    @property
    def share(self) -> float:
        """The difference divided by the tolerance."""
        if self.problem:
            return float("inf")
        return 0.0 if self.max_abs == 0 else self.max_abs / self.allowed if self.allowed else float("inf")


@dataclass(frozen=True)
class Report:
    """The comparison of every output."""

    outputs: tuple[Comparison, ...]
    device: str = "cpu"
    """The device of the plan's run."""
    note: str = ""
    """How onnxruntime's run differs from the model's file, and why; empty if it does not."""

    @property
    def ok(self) -> bool:
        """Whether no output is different; see `equal`."""
        return all(output.ok for output in self.outputs)

    @property
    def equal(self) -> bool:
        """Whether every output is equal to the reference's."""
        return all(output.verdict == "equal" for output in self.outputs)

    @property
    def worst(self) -> float:
        """The largest difference of an output divided by its tolerance; infinite without values to compare."""
        return max((output.share for output in self.outputs if output.verdict != "random"), default=0.0)

    @property
    def summary(self) -> str:
        """The numbers of outputs by verdict, in words."""
        return counted([output.verdict for output in self.outputs], "output")


def worst_of(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts."""
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
    *,
    sliced: bool = False,
) -> Report:
    """Compare outputs by name. `tolerance` replaces the dtype's own tolerance.

    `random` names the outputs of random numbers. If `sliced`, the scale of an element is that of its slice; otherwise,
    it is the largest magnitude of the output.
    """
    comparisons: list[Comparison] = []
    for name, value in expected.items():
        if name not in found:
            comparisons.append(Comparison(name, "", (), problem="the plan has no such output"))
        else:
            compared = _compare_value(name, value, found[name], tolerance, sliced)
            comparisons.extend(
                replace(each, is_random=name in random, strict=tolerance is not None) for each in compared
            )
    return Report(tuple(comparisons))


def _compare_value(name: str, expected: Any, found: Any, tolerance: float | None, sliced: bool) -> list[Comparison]:
    """Compare one output, or each element of a sequence."""
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [Comparison(name, "sequence", (len(expected),), problem="the sequence has another length")]
        pairs = enumerate(zip(expected, found, strict=True))
        return [each for i, (a, b) in pairs for each in _compare_value(f"{name}[{i}]", a, b, tolerance, sliced)]
    if expected is None or found is None:
        return [
            Comparison(name, "optional", (), problem="" if expected is found else "one of the two optionals is empty")
        ]
    return [_compare_arrays(name, np.asarray(expected), np.asarray(found), tolerance, sliced)]


def _compare_arrays(
    name: str, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any], tolerance: float | None, sliced: bool
) -> Comparison:
    dtype, shape = "string" if expected.dtype == object else expected.dtype.name, expected.shape
    if found.dtype != expected.dtype:
        return Comparison(name, dtype, shape, problem=f"found dtype {found.dtype.name}")
    if found.shape != shape:
        return Comparison(name, dtype, shape, problem=f"found shape {list(found.shape)}")
    if dtype not in TOLERANCES:
        return _compare_exactly(name, dtype, expected, found)
    special = ~np.isfinite(_wide(expected)) | ~np.isfinite(_wide(found))
    if not np.array_equal(_wide(expected[special]), _wide(found[special]), equal_nan=True):
        return Comparison(name, dtype, shape, float("inf"), note="NaN or infinity in other places")
    a, b = (np.where(special, array.dtype.type(0), array) for array in (expected, found))
    wide = _wide(a)
    difference = np.abs(wide - _wide(b))
    allowed = tolerances(expected, tolerance, sliced=sliced)
    max_abs, least = _worst(difference, allowed)
    relative = np.divide(difference, np.abs(wide), out=np.zeros_like(difference), where=wide != 0)
    ulp = int(_largest(np.abs(_ordered(a) - _ordered(b)).astype(np.float64)))
    return Comparison(name, dtype, shape, max_abs, _largest(relative), ulp, least)


def tolerances(
    expected: np.ndarray[Any, Any], tolerance: float | None = None, *, sliced: bool = True
) -> np.ndarray[Any, Any]:
    """The allowed difference of each element of an output of floats, in an array that broadcasts to the output.

    It is `tolerance`, by default that of the dtype, times the scale of the element's slice, plus one rounding of the
    output's largest magnitude. It is at most `tolerance` times this magnitude, and exactly that unless `sliced`.
    """
    fraction = TOLERANCES[expected.dtype.name] if tolerance is None else tolerance
    sizes = magnitudes(expected)
    whole = _scale(sizes, expected.dtype)
    most = np.full((1,) * expected.ndim, fraction * whole)
    if not sliced:
        return most
    rounding = float(ml_dtypes.finfo(expected.dtype).eps) * whole  # type: ignore[no-untyped-call]
    found: np.ndarray[Any, Any] = np.minimum(most, fraction * Slices(sizes).scale + rounding)
    return found


def _worst(difference: np.ndarray[Any, Any], allowed: np.ndarray[Any, Any]) -> tuple[float, float]:
    """The difference and the tolerance of the worst element."""
    if not difference.size:
        return 0.0, _largest(allowed)
    with np.errstate(divide="ignore", over="ignore"):
        shares = np.divide(difference, allowed, out=np.zeros_like(difference), where=difference > 0)
    worst = np.unravel_index(int(shares.argmax()), shares.shape)
    return float(difference[worst]), float(np.broadcast_to(allowed, difference.shape)[worst])


def _compare_exactly(name: str, dtype: str, expected: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> Comparison:
    """Compare integers, booleans, strings, and floats of at most 8 bits."""
    shape, differs = expected.shape, np.asarray(expected != found)
    if expected.dtype != object:
        a, b = expected.astype(np.float64), found.astype(np.float64)
        differs &= ~(np.isnan(a) & np.isnan(b))
    if not differs.any():
        return Comparison(name, dtype, shape)
    distance = 0.0 if expected.dtype == object else _largest(np.nan_to_num(np.abs(a - b)[differs], nan=np.inf))
    # Strings have no distance, and rounding may hide the distance of large integers. Both still differ.
    note = f"{differs.sum()} of {expected.size} elements differ"
    return Comparison(name, dtype, shape, distance or float("inf"), note=note)


def _wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    with np.errstate(invalid="ignore"):  # NumPy warns of signaling NaNs
        return array.astype(np.float64)


def _scale(sizes: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> float:
    """The largest of the magnitudes, but at least the smallest normal number of the dtype."""
    if not sizes.any():
        return 0.0
    smallest: Any = ml_dtypes.finfo(dtype).smallest_normal  # type: ignore[no-untyped-call]
    return max(_largest(sizes), float(smallest))


def _ordered(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Maps floats to integers in the same order, so that neighboring floats differ by one."""
    bits = array.view(np.dtype(f"int{8 * array.dtype.itemsize}")).astype(np.int64)
    return np.where(bits < 0, np.int64(-(2 ** (8 * array.dtype.itemsize - 1))) - bits, bits)


def _largest(values: np.ndarray[Any, Any]) -> float:
    return float(values.max()) if values.size else 0.0
