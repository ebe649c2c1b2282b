"""Does a plan give what onnxruntime gives? Runs both on the same inputs, and says how far the outputs are apart."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from compiler import _runtime, expect
from compiler.compare import TOLERANCES, Comparison, Report, compare
from compiler.double import widened
from compiler.pipeline import compile
from compiler.plan import Plan
from compiler.precision import exact_outputs
from compiler.reference import Reference
from compiler.samples import random_inputs
from compiler.session import load

if TYPE_CHECKING:
    from collections.abc import Collection

    import onnx

__all__ = ["Comparison", "Report", "compare_with_reference", "random_outputs", "verify"]


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
    `tolerance` takes the place of that of the dtype (`TOLERANCES`): an output beyond it is then different, however
    unsure onnxruntime is. Needs onnxruntime.

    Raises:
        CompileError: the model is refused.
        PlanError: the file is not a sound plan.
        InputError: an input does not fit what the plan declares.
        RunError: a step of the plan failed.
        ReferenceMissing, ReferenceFailed: onnxruntime is not installed, or cannot run the model.
        TypeError, ValueError: an argument is not what is expected here.
    """
    expect.instance("plan", plan, (Plan, str, os.PathLike, type(None)), "a compiler.Plan or the path of a plan file")
    if tolerance is not None:
        expect.instance("tolerance", tolerance, Real, "a number from 0")
        if not 0 <= tolerance < math.inf:
            raise ValueError(f"tolerance: expected a number from 0, found {tolerance}")
    compared = compile(model) if plan is None else plan if isinstance(plan, Plan) else Plan.load(plan)
    session = load(compared, device, threads)
    given = random_inputs(session.inputs, dims or {}, seed) if inputs is None else inputs
    found = session.run(given)
    reference = Reference(model)
    report = compare_with_reference(reference, given, found, tolerance, random_outputs(compared))
    report = report if report.equal else _with_errors(report, model, reference, given, found)
    return replace(report, device=session.device)


def compare_with_reference(
    reference: Reference,
    inputs: Mapping[str, Any],
    found: Mapping[str, Any],
    tolerance: float | None = None,
    random: Collection[str] = (),
) -> Report:
    """Compare outputs with onnxruntime's; where they differ and no tolerance is given, its doubt is measured.

    `random` are the names of outputs of which only dtype and shape are compared.

    Raises:
        ReferenceFailed: onnxruntime cannot run the model.
    """
    expected = reference.run(inputs)
    report = compare(expected, found, tolerance, random)
    if tolerance is not None or all(each.verdict in ("equal", "random") for each in report.outputs):
        return report
    plain = reference.plain.run(inputs)
    doubts = {each.name: each for each in compare(expected, plain).outputs}
    others = {each.name: each for each in compare(plain, found).outputs}
    return Report(tuple(_with_doubt(each, doubts.get(each.name), others.get(each.name)) for each in report.outputs))


def random_outputs(plan: Plan) -> set[str]:
    """The names of the outputs that random numbers reach.

    Raises:
        PlanError: the bytes are no sound plan.
    """
    main = plan.document["main"]
    reached: set[int] = set()
    for step in main["steps"]:
        if _makes_random_numbers(step) or reached.intersection(step["inputs"]):
            reached.update(index for index in step["outputs"] if index is not None)
    return {main["values"][index]["name"] for index in main["outputs"] if index in reached}


def _with_errors(
    report: Report, model: Any, reference: Reference, inputs: Mapping[str, Any], found: Mapping[str, Any]
) -> Report:
    """The report with the outputs' and onnxruntime's distance from what the model gives in double precision.

    It stays as it is where the model cannot be computed so, as one that quantises.
    """
    exact, expected = exact_outputs(model, inputs), reference.run(inputs)
    if exact is None:
        return report
    ours, theirs = (
        {each.name: each for each in compare(exact, {name: widened(value) for name, value in values.items()}).outputs}
        for values in (found, expected)
    )
    return Report(tuple(_with_error(each, ours.get(each.name), theirs.get(each.name)) for each in report.outputs))


_RANDOM = frozenset(name for family, name, _ in json.loads(_runtime.ops()) if family == "random")


def _makes_random_numbers(step: Mapping[str, Any]) -> bool:
    """Whether a step is of a random op, or has one in its blocks."""
    if not isinstance(step["op"], Mapping):
        return step["op"] in _RANDOM
    ((name, attributes),) = step["op"].items()
    blocks = attributes.values() if isinstance(attributes, Mapping) else ()
    inner = [step for block in blocks if isinstance(block, Mapping) for step in block.get("steps", ())]
    return name in _RANDOM or any(map(_makes_random_numbers, inner))


def _with_doubt(output: Comparison, doubt: Comparison | None, other: Comparison | None) -> Comparison:
    """Integers, which have no tolerance, stay as they are."""
    if output.dtype not in TOLERANCES or doubt is None or other is None or doubt.problem or other.problem:
        return output
    return replace(output, doubt=doubt.max_abs, nearest=min(output.max_abs, other.max_abs))


def _with_error(output: Comparison, ours: Comparison | None, theirs: Comparison | None) -> Comparison:
    if output.verdict == "equal" or ours is None or theirs is None or ours.problem or theirs.problem:
        return output
    return replace(output, error=ours.max_abs, reference_error=theirs.max_abs)
