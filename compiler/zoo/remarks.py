"""The verdict and the remarks on one run: on a refused model, or on outputs beyond their tolerance."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compiler.accuracy.compare import worst_of

if TYPE_CHECKING:
    from compiler import CompileError
    from compiler.accuracy.compare import Comparison, Report
    from compiler.zoo.outcome import Outcome

__all__ = ["of_outputs", "of_refusal"]


def of_refusal(outcome: Outcome, error: CompileError) -> Outcome:
    """The outcome of a refused model. Unlike the advice, which has paths, the remarks are the same on all machines."""
    found = [each for each in error.diagnostics if each.severity == "error"]
    advice = {f"{each.message} ({each.code})": each.advice for each in found}
    codes = tuple(sorted({each.code for each in found}))
    return replace(outcome, verdict="refused", remarks=tuple(advice), codes=codes, advice=advice)


def of_outputs(outcome: Outcome, case: str, report: Report) -> Outcome:
    """The outcome of a case: the worst verdict on its outputs, and remarks on those beyond the tolerance."""
    in_order = sorted(report.outputs, key=lambda each: (each.verdict == "random", -each.share))
    remarks = tuple(f"{case}: {_remark(each)}" for each in in_order if each.max_abs > each.allowed or not each.ok)
    verdict = worst_of([each.verdict for each in report.outputs])
    return replace(outcome, verdict=verdict, remarks=remarks, share=report.worst, note=report.note)


def _remark(output: Comparison) -> str:
    """The remark on an output beyond the tolerance."""
    if output.verdict == "random":
        return f"{output.name}: random numbers; the command compared only dtype and shape"
    if output.problem or output.note:
        return f"{output.name}: {output.problem or output.note}"
    said = f"{output.name}: difference {output.max_abs:.1e}, tolerance {output.allowed:.1e}"
    if output.error is not None and output.reference_error is not None:
        said += f"; error against double precision {output.error:.1e}, onnxruntime's {output.reference_error:.1e}"
    if output.reference_noise <= output.allowed:
        return said
    noise = f"{output.reference_noise:.1e} apart"
    return f"{said}; {output.nearest:.1e} from the nearer of onnxruntime's two results, {noise}"
