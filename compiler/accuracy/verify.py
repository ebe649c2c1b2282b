"""Verification of a plan: run it and onnxruntime on the same inputs, and compare the outputs."""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
import functools
import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from compiler import _runtime
from compiler.accuracy.compare import Comparison, Report, compare
from compiler.accuracy.large import is_large
from compiler.accuracy.noise import with_noise
from compiler.accuracy.precision import in_double_precision, run_exactly
from compiler.accuracy.random_inputs import random_inputs
from compiler.accuracy.reference import Reference
from compiler.accuracy.to_float64 import widened
from compiler.accuracy.yardstick import errors_are_alike, moved
from compiler.pipeline import compile_stored
from compiler.plan import Plan
from compiler.runtime.session import load
from compiler.validate import validate_instance

if TYPE_CHECKING:
    from collections.abc import Collection

    import onnx

    from compiler.frontend.load import Source
    from compiler.runtime.session import Session

__all__ = ["Comparison", "Given", "Judge", "Report", "random_outputs", "verify"]

_Arrays = Mapping[str, Any]

_MOVES = 3
"""The number of runs that measure how much the outputs depend on the rounding of the inputs."""


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
    """Run `model` in onnxruntime and `plan` on the same inputs, and compare the outputs.

    Without `plan`, the function compiles the model. Without `inputs`, the function uses random arrays of the declared
    shapes: `seed` is their seed, and `dims` gives the sizes of symbolic dimensions. `tolerance` replaces the tolerance
    of the dtype (`TOLERANCES`), and every output beyond it counts as different. The function needs onnxruntime.

    Raises:
        CompileError: the compiler refuses the model.
        PlanError: the file is not a valid plan.
        InputError: an input does not fit the plan's declaration.
        RunError: a step of the plan failed.
        ReferenceMissing, ReferenceFailed: onnxruntime is not installed, or cannot run the model.
        TypeError, ValueError: an argument has a wrong type or value.
    """
    validate_instance("plan", plan, (Plan, str, os.PathLike, type(None)), "a compiler.Plan or the path of a plan file")
    if tolerance is not None:
        validate_instance("tolerance", tolerance, Real, "a number from 0")
        if not 0 <= tolerance < math.inf:
            raise ValueError(f"tolerance: expected a number from 0, found {tolerance}")
    compared = compile_stored(model) if plan is None else plan if isinstance(plan, Plan) else Plan.load(plan)
    session = load(compared, device, threads)
    given = random_inputs(session.inputs, dims or {}, seed) if inputs is None else inputs
    found, used, random = session.run(given), session.device, random_outputs(compared)
    del session, compared  # they may be large
    return replace(Judge(model).compare(given, found, tolerance, random), device=used)


class Judge:
    """A model in onnxruntime and in double precision, as the reference for the outputs of its plans.

    `threads` is the number of threads of the model in double precision. `note` is the note of the `Reference`. A large
    model is loaded for each reading of `reference` and `double`, so that its weights are in memory once at most.

    Raises:
        ReferenceMissing, ReferenceFailed: onnxruntime is not installed, or refuses the model.
    """

    def __init__(self, model: Source, threads: int | None = None) -> None:
        self._model, self._threads, self._is_large = model, threads, is_large(model)
        loaded = Reference(model, lean=self._is_large)
        self.note, self._reference = loaded.note, None if self._is_large else loaded

    def given(self, inputs: Mapping[str, Any]) -> Given:
        """The references for these inputs."""
        return Given(self, inputs)

    def compare(
        self,
        inputs: Mapping[str, Any],
        found: Mapping[str, Any],
        tolerance: float | None = None,
        random: Collection[str] = (),
    ) -> Report:
        """Compare outputs for these inputs, see `Given.compare`."""
        return self.given(inputs).compare(found, tolerance, random)

    @property
    def reference(self) -> Reference:
        """The model in onnxruntime."""
        return Reference(self._model, lean=True) if self._reference is None else self._reference

    @property
    def double(self) -> Session | None:
        """The model in double precision; `None` if it has no such form."""
        return in_double_precision(self._model, self._threads) if self._is_large else self._double

    @functools.cached_property
    def _double(self) -> Session | None:
        return in_double_precision(self._model, self._threads)


class Given:
    """The references for some inputs. Each is computed once, when a comparison first needs it.

    Raises:
        ReferenceFailed: onnxruntime cannot run the model.
    """

    def __init__(self, judge: Judge, inputs: _Arrays) -> None:
        self._judge, self._inputs = judge, inputs

    @property
    def note(self) -> str:
        """How the reference's run differs from the model's file."""
        return self._judge.note

    @functools.cached_property
    def expected(self) -> _Arrays:
        """The outputs of onnxruntime."""
        return self._judge.reference.run(self._inputs)

    @functools.cached_property
    def plain(self) -> _Arrays:
        """The outputs of onnxruntime without its optimizations."""
        return self._judge.reference.plain.run(self._inputs)

    def _moved(self, name: str) -> list[Any]:
        return [outputs[name] for outputs in self.moved]

    @functools.cached_property
    def moved(self) -> list[_Arrays]:
        """The outputs of onnxruntime for inputs that differ by one rounding, in three runs."""
        reference = self._judge.reference
        return [reference.run(moved(self._inputs, seed)) for seed in range(_MOVES)]

    @functools.cached_property
    def exact(self) -> _Arrays | None:
        """The outputs in double precision; `None` if the model has no such form."""
        return run_exactly(self._judge.double, self._inputs)

    def compare(self, found: _Arrays, tolerance: float | None = None, random: Collection[str] = ()) -> Report:
        """Compare outputs with onnxruntime's.

        If outputs differ, the function measures the errors of both against double precision. If these do not explain
        the difference, and the caller gave no tolerance, it measures the reference noise. For the outputs that `random`
        names, it compares only dtype and shape.
        """
        report = compare(self.expected, found, tolerance, random, sliced=True)
        if not _is_settled(report):
            report = self._with_errors(report, found, tolerance)
        if tolerance is None and not _is_settled(report):
            report = self._with_reference_noise(report, found)
        return replace(report, note=self.note)

    def _with_errors(self, report: Report, found: _Arrays, tolerance: float | None) -> Report:
        """The report with the errors of both against double precision; unchanged if the model has no such form."""
        exact, expected = self.exact, self.expected
        if exact is None:
            return report
        ours, theirs = (
            by_name(compare(exact, {name: widened(value) for name, value in values.items()}))
            for values in (found, expected)
        )
        alike = {
            each.name: errors_are_alike(
                exact[each.name],
                found[each.name],
                expected[each.name],
                tolerance,
                functools.partial(self._moved, each.name),
            )
            for each in report.outputs
            if each.name in exact and each.name in found and not each.problem
        }
        outputs = (_with_error(each, ours.get(each.name), theirs.get(each.name)) for each in report.outputs)
        return Report(tuple(replace(each, rounds_alike=alike.get(each.name, False)) for each in outputs))

    def _with_reference_noise(self, report: Report, found: _Arrays) -> Report:
        """The report with the reference noise, and the outputs' differences from the nearer result."""
        pair = self.expected, self.plain
        return with_noise(report, found, pair, pair)


def _is_settled(report: Report) -> bool:
    return all(each.verdict in ("equal", "random") for each in report.outputs)


def by_name(report: Report) -> dict[str, Comparison]:
    return {each.name: each for each in report.outputs}


def random_outputs(plan: Plan) -> set[str]:
    """The names of the outputs that depend on random numbers.

    Raises:
        PlanError: the bytes are not a valid plan.
    """
    main = plan.document["main"]
    reached: set[int] = set()
    for step in main["steps"]:
        if _makes_random_numbers(step) or reached.intersection(step["inputs"]):
            reached.update(index for index in step["outputs"] if index is not None)
    return {main["values"][index]["name"] for index in main["outputs"] if index in reached}


_RANDOM = frozenset(name for family, name, _ in json.loads(_runtime.ops()) if family == "random")


def _makes_random_numbers(step: Mapping[str, Any]) -> bool:
    """Whether a step has a random op, or contains one in its blocks."""
    if not isinstance(step["op"], Mapping):
        return step["op"] in _RANDOM
    ((name, attributes),) = step["op"].items()
    blocks = attributes.values() if isinstance(attributes, Mapping) else ()
    inner = [step for block in blocks if isinstance(block, Mapping) for step in block.get("steps", ())]
    return name in _RANDOM or any(map(_makes_random_numbers, inner))


def _with_error(output: Comparison, ours: Comparison | None, theirs: Comparison | None) -> Comparison:
    if output.max_abs <= output.allowed or ours is None or theirs is None or ours.problem or theirs.problem:
        return output
    return replace(output, error=ours.max_abs, reference_error=theirs.max_abs)
