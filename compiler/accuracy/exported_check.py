"""The comparison of an exported model with its PyTorch module."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.compare import TOLERANCES, compare
from compiler.accuracy.exported_arguments import Open, open_dims, other_sizes, resized
from compiler.accuracy.exported_place import place_of_difference
from compiler.accuracy.module_runs import Call
from compiler.accuracy.precision import in_double_precision, run_exactly
from compiler.accuracy.verify import Given, random_outputs
from compiler.errors import CompileError, InputError, RunError
from compiler.frontend.export_request import ExportError
from compiler.pipeline import compile
from compiler.runtime.session import load

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from compiler.accuracy.compare import Comparison, Report
    from compiler.frontend.export_request import Exported
    from compiler.runtime.session import Session

__all__ = ["ExportCheck", "check_model"]


@dataclass(frozen=True)
class ExportCheck:
    """The result of a check. It compared `runs` sets of arguments. `other` describes the second set."""

    runs: int
    other: str = ""
    notes: tuple[str, ...] = ()
    """The reasons why it left out a comparison."""


class _Skipped(Exception):
    """The model cannot be compared, or not with these arguments."""


def check_model(exported: Exported, *, locate: bool = False) -> ExportCheck:
    """Compare the plan of an exported model with the module, for the given arguments and for others of other sizes.

    A recorded model keeps what Python decided for the given arguments. If its dims are fixed, the function compares it
    for other values.

    Raises:
        ExportError: an output differs, or the plan's run fails.
    """
    request = exported.request
    call = Call(request.module, tuple(request.args), dict(request.kwargs))
    try:
        expected = _expected(call, exported)
        session, random = _session(exported)
        check = functools.partial(_check, exported, session, random=random, locate=locate)
        check(call, expected, "")
    except _Skipped as skipped:
        return ExportCheck(0, notes=(f"not checked: {skipped}",))
    dims = open_dims(call, exported.axes, exported.inputs, session.inputs)
    notes = (f"the exported model fixes the size of {', '.join(map(repr, dims.fixed))}",) if dims.fixed else ()
    if not dims.sizes and exported.program is not None:
        return ExportCheck(1, notes=notes)
    try:
        tried, other, wanted = _other(call, dims)
        check(other, wanted, f" with {tried}")
    except _Skipped as skipped:
        what = "sizes" if dims.sizes else "values"
        return ExportCheck(1, notes=(*notes, f"not checked with other {what}: {skipped}"))
    return ExportCheck(2, tried, notes)


def _expected(call: Call, exported: Exported) -> list[Any]:
    """The module's results.

    Raises:
        _Skipped: the module fails, its results are random, or their number is not that of the model's outputs.
    """
    expected, again = _results(call), _results(call, seed=1)
    if not _are_equal(expected, again):
        raise _Skipped("the module's outputs differ between two runs")
    if len(expected) != len(exported.outputs):
        raise _Skipped(f"the module has {len(expected)} outputs, the model {len(exported.outputs)}")
    return expected


def _results(call: Call, seed: int = 0) -> list[Any]:
    try:
        return call.run(seed=seed)
    except Exception as error:  # a module may raise anything
        reason = str(error).strip().partition("\n")[0]
        raise _Skipped(f"the module fails: {type(error).__name__}: {reason}") from error


def _are_equal(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether the results of two runs are equal, except for rounding: threads may add in any order."""
    first, second = ({str(index): value for index, value in enumerate(values)} for values in (one, other))
    return len(one) == len(other) and compare(first, second).ok


def _session(exported: Exported) -> tuple[Session, set[str]]:
    """A session of the model, and the names of its random outputs."""
    try:
        plan = compile(exported.path)
    except CompileError as error:
        first = error.diagnostics[0]
        raise _Skipped(f"the compiler refuses the model: {first.code}: {first.message}") from error
    return load(plan), random_outputs(plan)


def _other(call: Call, dims: Open) -> tuple[str, Call, list[Any]]:
    """The first other sizes that the module accepts, arguments of these sizes, and the results."""
    refused = _Skipped()
    for tried in other_sizes(dims.sizes):
        other = resized(call, dims.axes, tried)
        said = ", ".join(f"{name}={size}" for name, size in tried.items()) or "other values"
        try:
            return said, other, _results(other)
        except _Skipped as skipped:
            refused = skipped
    raise refused


def _check(
    exported: Exported,
    session: Session,
    call: Call,
    expected: Sequence[Any],
    where: str,
    *,
    random: Collection[str],
    locate: bool,
) -> None:
    """Compare one run. `where` names its sizes.

    Raises:
        ExportError: an output differs, or the plan's run fails.
        _Skipped: the plan does not accept the arguments.
    """
    names, title = exported.outputs, type(call.module).__name__
    try:
        inputs = call.inputs(exported.inputs)
        found = session.run(inputs)
    except (InputError, ValueError) as error:
        raise _Skipped(f"the model does not accept the module's arguments{where}: {error}") from error
    except RunError as error:
        raise ExportError(f"{exported.path}: the model fails{where}, but {title} does not: {error}") from error
    wanted = dict(zip(names, expected, strict=True))
    report = _OfModule(exported, call, inputs, wanted).compare(found, random=random)
    if not report.ok:
        said = f"{exported.path} does not compute what {title} computes{where}: {_worst(report, wanted, found)}"
        advice = "export with --locate (locate=True), which names the first module that differs"
        advice = place_of_difference(exported, call) if locate else advice
        cures = [exported.cure] if exported.cure else []
        notes = [f"  note: {note}" for note in exported.notes]
        raise ExportError("\n".join([said, *notes, *(f"  help: {each}" for each in [*cures, advice])]))


class _OfModule(Given):
    """The module as the reference. PyTorch without its fast kernels gives the reference noise."""

    note = ""

    def __init__(self, exported: Exported, call: Call, inputs: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
        self._exported, self._call, self._inputs, self._expected = exported, call, inputs, expected

    @functools.cached_property
    def expected(self) -> Mapping[str, Any]:
        """The module's results."""
        return self._expected

    @functools.cached_property
    def plain(self) -> Mapping[str, Any]:
        """The module's results, computed by other kernels."""
        return dict(zip(self._exported.outputs, self._call.run(plain=True), strict=True))

    @functools.cached_property
    def exact(self) -> Mapping[str, Any] | None:
        """The model's results in double precision."""
        return run_exactly(in_double_precision(self._exported.path), self._inputs)


def _worst(report: Report, expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """The output that differs most, with the difference and its place."""
    wrong = [each for each in report.outputs if not each.ok]
    worst = max(wrong, key=lambda each: each.share)
    more = len(wrong) - 1
    others = f"; {more} more output{'s differ' if more > 1 else ' differs'}" if more else ""
    return f"output {worst.name!r} {_difference(worst, expected[worst.name], found.get(worst.name))}{others}"


def _difference(worst: Comparison, expected: Any, found: Any) -> str:
    if worst.problem:
        return f"has dtype {worst.dtype} and shape {list(worst.shape)} in PyTorch: {worst.problem}"
    a, b = expected.astype(np.float64), found.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.nan_to_num(np.abs(a - b), nan=np.inf))
    at = tuple(int(index) for index in np.unravel_index(int(distance.argmax()), distance.shape))
    allowed = f", allowed {worst.allowed:.2g}" if worst.dtype in TOLERANCES else ""
    values = f"PyTorch gives {expected[at]}, the model {found[at]}"
    return f"differs by {distance[at]:.2g} at {list(at)}{allowed} ({values})"
