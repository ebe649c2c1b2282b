"""The outcomes of `candlec zoo`: the comparison of one variant of a model with onnxruntime, and its judgment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.accuracy.compare import worst_of

if TYPE_CHECKING:
    from compiler import CompileError, Plan
    from compiler.accuracy.compare import Comparison, Verdict
    from compiler.accuracy.verify import Judge
    from compiler.zoo.baseline import Expectation, KnownDifference, Result, Shapes
    from compiler.zoo.index import Entry

__all__ = ["Outcome", "Stale", "check", "judged", "stale_expectations", "together", "variants"]


@dataclass(frozen=True)
class Variant:
    """A way to compile and run a model."""

    optimize: bool
    threads: int
    device: str = "cpu"

    def __str__(self) -> str:
        where = f"{self.threads} thread{'s' if self.threads > 1 else ''}" if self.device == "cpu" else self.device
        return f"{'optimized' if self.optimize else 'plain'}, {where}"


def variants(device: str) -> list[Variant]:
    """The ways to compile and run each model. On the CPU, these include runs with one thread and with two."""
    counts = (1, 2) if device == "cpu" else (1,)
    return [Variant(optimize, threads, device) for optimize in (True, False) for threads in counts]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one way to run one model: the verdict on the worst output (see `candlec verify`).

    `way` is the text of the variant. `remarks` describe the outputs beyond the tolerance, worst first. `share` is the
    worst difference divided by the tolerance. `codes` are the error codes of a refusal. `note` says how onnxruntime's
    run differs from the file. `problem` says why the outcome is not acceptable, and is empty for an acceptable one.
    """

    model: str
    way: str
    verdict: Verdict
    remarks: tuple[str, ...] = ()
    share: float = float("inf")
    seconds: float = 0.0
    problem: str = ""
    codes: tuple[str, ...] = ()
    note: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """The outcome as JSON."""
        return {**asdict(self), "ok": not self.problem}


@dataclass(frozen=True)
class Stale:
    """A line of the baseline that no longer holds."""

    model: str
    problem: str


def check(entry: Entry, shapes: Shapes, device: str = "cpu") -> list[Outcome]:
    """The outcome of every way to run a model on a device, over all of its cases."""
    from compiler.accuracy.reference import ReferenceFailed
    from compiler.accuracy.verify import Judge

    if fault := _fault(entry):
        return [Outcome(entry.name, str(variant), "failed", (fault,)) for variant in variants(device)]
    try:
        judge = Judge(entry.path)
        return [_check_variant(entry, judge, variant, shapes) for variant in variants(device)]
    except ReferenceFailed as error:
        return [Outcome(entry.name, str(variant), "failed", (str(error),)) for variant in variants(device)]


def judged(outcome: Outcome, entry: Entry, expectation: Expectation | None) -> Outcome:
    """The outcome with its `problem`, judged by the expectation for the model."""
    if outcome.verdict in ("equal", "random"):
        return outcome
    if outcome.verdict == "failed":
        return replace(outcome, problem=f"it cannot be checked: {outcome.remarks[0]}")
    found = together([outcome])
    if expectation is not None:
        return replace(outcome, problem=expectation.exceeded(found))
    if outcome.verdict != "uncertain":
        return replace(outcome, problem=f"it is {found if found.codes else 'not equal'}")
    problem = "" if entry.uncertain else "it is uncertain, and neither INDEX.json nor the baseline allows it"
    return replace(outcome, problem=problem)


def stale_expectations(
    outcomes: Sequence[Outcome], known: Mapping[str, KnownDifference], shapes: Shapes
) -> Iterator[Stale]:
    """The expectations that all variants of a model now surpass, and those of missing models."""
    for model, each in known.items():
        mine = [outcome.verdict for outcome in outcomes if outcome.model == model]
        if not mine:
            yield Stale(model, "it is in the baseline, but not in the folder")
        elif shapes in each.expectations and (problem := each.expectations[shapes].outdated(worst_of(mine))):
            yield Stale(model, problem)


def together(outcomes: Sequence[Outcome]) -> Result:
    """The worst verdict of all variants, the largest share, and all codes of refusals."""
    from compiler.zoo.baseline import Result

    worst, share = worst_of([each.verdict for each in outcomes]), max(each.share for each in outcomes)
    codes = {code for each in outcomes for code in each.codes} if worst == "refused" else set()
    return Result(worst, share, tuple(sorted(codes)))


def _fault(entry: Entry) -> str:
    """The problem with the files of a model; an empty string if all are readable."""
    try:
        entry.path.stat()
        for case in entry.cases:
            entry.inputs(case)
    except FileNotFoundError as error:
        return f"there is no file {error.filename}"
    except (OSError, ValueError) as error:
        return str(error)
    return ""


def _check_variant(entry: Entry, judge: Judge, variant: Variant, shapes: Shapes) -> Outcome:
    """The outcome over all cases."""
    start = time.perf_counter()
    cases = [_check_case(entry, case, judge, variant, shapes) for case in entry.cases]
    found = sorted(cases, key=lambda each: (each.verdict == "failed", each.share), reverse=True)
    worst = together(found)
    remarks = tuple(dict.fromkeys(remark for each in found for remark in each.remarks))
    seconds = time.perf_counter() - start
    note = next((each.note for each in cases if each.note), "")
    return Outcome(entry.name, str(variant), worst.verdict, remarks, worst.share, seconds, codes=worst.codes, note=note)


def _check_case(entry: Entry, case: Path, judge: Judge, variant: Variant, shapes: Shapes) -> Outcome:
    import compiler
    from compiler.accuracy.verify import random_outputs

    inputs, name = entry.inputs(case), case.stem.removeprefix(f"{entry.name}.")
    try:
        plan = _compile(entry, inputs, variant.optimize, shapes)
        outputs = compiler.load(plan, variant.device, variant.threads).run(inputs)
    except compiler.CompileError as error:
        judge.reference.run(inputs)  # a case that does not fit the model is not the compiler's fault
        return _refused(entry, variant, error)
    except (compiler.InputError, compiler.PlanError, compiler.RunError) as error:
        return Outcome(entry.name, str(variant), "failed", (f"{name}: {error}",))
    report = judge.compare(inputs, outputs, entry.tolerance, random_outputs(plan))
    outputs_in_order = sorted(report.outputs, key=lambda each: (each.verdict == "random", -each.share))
    remarks = tuple(
        f"{name}: {_remark(each)}" for each in outputs_in_order if each.max_abs > each.allowed or not each.ok
    )
    verdict = worst_of([each.verdict for each in report.outputs])
    return Outcome(entry.name, str(variant), verdict, remarks, report.worst, note=report.note)


def _refused(entry: Entry, variant: Variant, error: CompileError) -> Outcome:
    """The outcome of a refused model: the compiler's findings without its advice, which depends on the machine."""
    found = [each for each in error.diagnostics if each.severity == "error"]
    remarks = tuple(dict.fromkeys(f"{each.message} ({each.code})" for each in found))
    return Outcome(entry.name, str(variant), "refused", remarks, codes=tuple(sorted({each.code for each in found})))


def _compile(entry: Entry, inputs: dict[str, Any], optimize: bool, shapes: Shapes) -> Plan:
    import compiler
    from compiler.zoo.index import unpinned, with_shapes

    sizes = {name: array.shape for name, array in inputs.items()}
    model = unpinned(entry.path) if shapes == "unpinned" else with_shapes(entry.path, sizes)
    return compiler.compile(model, compiler.Options(optimize=optimize))


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
