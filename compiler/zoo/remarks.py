"""The verdict, the remarks and the differences of one run: of a refused model, or of its outputs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from compiler.accuracy.compare import Verdict, worst_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from compiler import CompileError
    from compiler.accuracy.compare import Comparison, Report
    from compiler.zoo.outcome import Outcome

__all__ = ["of_outputs", "of_refusal", "worst_outputs"]


def of_refusal(outcome: Outcome, error: CompileError) -> Outcome:
    """The outcome of a refused model. Unlike the advice, which has paths, the remarks are the same on all machines."""
    found = [each for each in error.diagnostics if each.severity == "error"]
    advice = {f"{each.message} ({each.code})": each.advice for each in found}
    codes = tuple(sorted({each.code for each in found}))
    return replace(outcome, verdict="refused", remarks=tuple(advice), codes=codes, advice=advice)


def of_outputs(outcome: Outcome, case: str, report: Report) -> Outcome:
    """The outcome of a case: the worst verdict on its outputs, and remarks on outputs beyond the tolerance."""
    in_order = sorted(report.outputs, key=lambda each: (each.verdict == "random", -each.share))
    remarks = tuple(f"{case}: {_remark(each)}" for each in in_order if each.max_abs > each.allowed or not each.ok)
    verdict = worst_of([each.verdict for each in report.outputs])
    outputs = tuple(_difference(case, each) for each in report.outputs)
    return replace(outcome, verdict=verdict, remarks=remarks, share=report.worst, note=report.note, outputs=outputs)


def worst_outputs(cases: Iterable[Outcome]) -> tuple[Mapping[str, Any], ...]:
    """The difference of each output in its worst case: the worst verdict, then the largest share."""
    worst: dict[str, Mapping[str, Any]] = {}
    for each in (difference for case in cases for difference in case.outputs):
        former = worst.get(each["name"])
        if former is None or _badness(each) > _badness(former):
            worst[each["name"]] = each
    return tuple(worst.values())


def _badness(difference: Mapping[str, Any]) -> tuple[int, float]:
    share = math.inf if difference["share"] is None else difference["share"]
    return get_args(Verdict).index(difference["verdict"]), share


def _difference(case: str, output: Comparison) -> dict[str, Any]:
    """The difference of an output as JSON. An infinite number, which JSON lacks, becomes null.

    `error` and `reference_error` are those of the output and of onnxruntime's against double precision, where they
    were measured. `note` is the note on the comparison, such as the value of a measure, if there is one.
    """
    numbers = {
        "difference": output.max_abs,
        "allowed": output.allowed,
        "share": output.share,
        "error": output.error,
        "reference_error": output.reference_error,
    }
    finite = {key: each if each is not None and math.isfinite(each) else None for key, each in numbers.items()}
    kind = {"dtype": output.dtype, "shape": list(output.shape)}
    noted = {"note": output.note} if output.note else {}
    return {"name": output.name, **kind, "verdict": output.verdict, "case": case, **finite, **noted}


def _remark(output: Comparison) -> str:
    """The remark on an output beyond the tolerance."""
    if output.verdict == "random":
        return f"{output.name}: random numbers; the command compared only dtype and shape"
    if output.problem or output.note:
        return f"{output.name}: {output.problem or output.note}"
    said = f"{output.name}: difference {output.max_abs:.1e}, tolerance {output.allowed:.1e}"
    if output.error is not None and output.reference_error is not None:
        said += f"; error against double precision {output.error:.1e}, {output.reference} {output.reference_error:.1e}"
    if output.reference_noise <= output.allowed:
        return said
    noise = f"{output.reference_noise:.1e} apart"
    return f"{said}; {output.nearest:.1e} from the nearer of onnxruntime's two results, {noise}"
