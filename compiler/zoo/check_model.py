"""The check of a model: compile it, run it in every variant, and compare every output with onnxruntime's.

The model is compiled once for each pair of shapes and optimization, and onnxruntime computes each case once for all of
them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import compiler
from compiler.accuracy.reference import ReferenceFailed
from compiler.accuracy.stated_outputs import Stated
from compiler.accuracy.verify import Given, Judge, random_outputs
from compiler.pipeline import compile_stored
from compiler.zoo.facts import Facts, facts_of, joined
from compiler.zoo.outcome import Outcome, Variant, together, variants
from compiler.zoo.remarks import of_outputs, of_refusal, worst_outputs
from compiler.zoo.rounding import Rounding, facts_of_roundings, rounding_of
from compiler.zoo.shapes import alike, pinned, unpinned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from compiler import Plan
    from compiler.accuracy.compare import Report
    from compiler.processes.child import Channel
    from compiler.rewrite.report import PassReport
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Shapes
    from compiler.zoo.task_arguments import Check

__all__ = ["check"]


@dataclass(frozen=True)
class _Case:
    """A case of a model: its number and name, its inputs, the references for them, and the outputs of its files."""

    number: int
    name: str
    inputs: dict[str, Any]
    given: Given
    stated: Stated | None

    def compare(self, outputs: Mapping[str, Any], entry: Entry, random: Collection[str]) -> Report:
        """The comparison of outputs with onnxruntime's, with those of the case's files, and by the model's measures.

        Raises:
            ValueError: an output that a measure needs is missing, or does not fit the measure.
        """
        report = self.given.compare(outputs, entry.tolerance, random)
        stated = () if self.stated is None else self.stated.compare(outputs, entry.tolerance, random).outputs
        has_values = not any(each.problem for each in report.outputs)
        measured = [task.compare(self.given.expected, outputs) for task in entry.tasks if has_values]
        return replace(report, outputs=(*report.outputs, *stated, *measured))


@dataclass(frozen=True)
class _Compiled:
    """A plan, or the reason why there is none, and the cases that it runs.

    `reports` are the reports of the passes, and `seconds` is the time of the compilation. The first session of an
    optimized plan adds its `facts`, and its first run of each case a rounding.
    """

    plan: Plan | compiler.CompileError
    optimize: bool
    cases: Sequence[_Case]
    reports: Sequence[PassReport]
    seconds: float
    facts: list[Facts] = field(default_factory=list)
    roundings: list[Rounding] = field(default_factory=list)


def check(asked: Check, channel: Channel) -> dict[Shapes, dict[str, Any]]:
    """Report the outcome of every variant as a part: the kind of shapes, and the data of the outcome.

    Returns the data of the facts of the optimized plans, for each kind of shapes that has any.
    """
    facts: dict[Shapes, list[Facts]] = {}
    left = [(shapes, variant) for shapes in asked.shapes for variant in variants(asked.device)]
    reason = _fault(asked.entry)
    try:
        for outcome in () if reason else _outcomes(asked, channel, facts):
            shapes, _ = left.pop(0)
            channel.part([shapes, outcome.unjudged])
    except ReferenceFailed as error:
        reason = str(error)
    for shapes, variant in left:
        channel.part([shapes, Outcome(asked.entry.name, str(variant), "failed", (reason,)).unjudged])
    return {shapes: joined(each).data for shapes, each in facts.items() if each}


def _fault(entry: Entry) -> str:
    """The problem with the files of a model; an empty string if all are readable."""
    if entry.unfetched:
        return entry.unfetched
    try:
        entry.path.stat()
        for case in entry.cases:
            entry.inputs(case)
            entry.outputs(case)
    except FileNotFoundError as error:
        return f"there is no file {error.filename}"
    except (OSError, ValueError) as error:
        return str(error)
    return "" if entry.cases else f"there is no test_data_set_* next to {entry.path}: add `cases` to INDEX.json"


def _outcomes(asked: Check, channel: Channel, facts: dict[Shapes, list[Facts]]) -> Iterator[Outcome]:
    """The outcome of every variant over all cases, by shapes, then in the order of the variants. Collects the facts.

    Raises:
        ReferenceFailed: onnxruntime refuses the model, or cannot run it.
    """
    entry = asked.entry
    channel.phase("load the model in onnxruntime")
    judge = Judge(entry.path, asked.threads)
    cases = [_case(entry, number, judge) for number in range(len(entry.cases))]
    for shapes in asked.shapes:
        groups = alike(cases, lambda case: case.inputs) if shapes == "pinned" else [cases]
        for optimize in (True, False):
            compiled = [_compile(asked, shapes, optimize, cases, channel) for cases in groups]
            yield from _variants(asked, shapes, compiled, channel)
            facts.setdefault(shapes, []).extend(each for one in compiled for each in one.facts)
            roundings = [each for one in compiled for each in one.roundings]
            facts[shapes] += [facts_of_roundings(roundings)] if roundings else []
            del compiled  # before the next compilation, which takes memory too


def _case(entry: Entry, number: int, judge: Judge) -> _Case:
    case = entry.cases[number]
    inputs, outputs = entry.inputs(case), entry.outputs(case)
    given = judge.given(inputs)
    stated = Stated(given, outputs) if outputs else None
    return _Case(number, case.stem.removeprefix(f"{entry.name}."), inputs, given, stated)


def _variants(asked: Check, shapes: Shapes, compiled: Sequence[_Compiled], channel: Channel) -> Iterator[Outcome]:
    """The outcomes of the variants that run the same plans, one for each group of cases."""
    began = time.perf_counter() - sum(one.seconds for one in compiled)
    for variant in variants(asked.device):
        if variant.optimize == compiled[0].optimize:
            found = [
                each for one in compiled for each in _run(asked.entry, variant, one, f"{shapes}, {variant}", channel)
            ]
            now = time.perf_counter()
            yield _over_all_cases(asked.entry, variant, found, now - began)
            began = now


def _compile(asked: Check, shapes: Shapes, optimize: bool, cases: Sequence[_Case], channel: Channel) -> _Compiled:
    """The plan for these cases, or the reason why there is none."""
    phase = f"compile: {shapes}, {'optimized' if optimize else 'plain'}"
    channel.phase(phase)
    began, reports = time.perf_counter(), list[Any]()

    def note(done: PassReport) -> None:
        channel.phase(f"{phase}, after the pass {done.name}")
        reports.append(done)

    path = asked.entry.path
    model = pinned(path, cases[0].inputs) if shapes == "pinned" else unpinned(path)
    options = compiler.Options(optimize=optimize, on_pass=note, **asked.compiling.options)
    plan: Plan | compiler.CompileError
    try:
        plan = compile_stored(model, options)
    except compiler.CompileError as error:
        plan = error
    return _Compiled(plan, optimize, cases, reports, time.perf_counter() - began)


def _run(
    entry: Entry, variant: Variant, compiled: _Compiled, label: str, channel: Channel
) -> Iterator[tuple[int, Outcome]]:
    """The number and outcome of each case of a plan."""
    if isinstance(compiled.plan, compiler.CompileError):
        for case in compiled.cases:
            _refer(case, channel)  # a case that does not fit the model is not the compiler's fault
            yield case.number, of_refusal(Outcome(entry.name, str(variant), "refused"), compiled.plan)
        return
    channel.phase(f"load: {label}")
    try:
        session = compiler.load(compiled.plan, variant.device, variant.threads)
    except compiler.PlanError as error:
        yield from ((case.number, _failed(entry, variant, case, error)) for case in compiled.cases)
        return
    if compiled.optimize and not compiled.facts:
        compiled.facts.append(facts_of(compiled.plan, session, compiled.reports))
    random = random_outputs(compiled.plan)
    for case in compiled.cases:
        channel.phase(f"run: {label}, {case.name}")
        try:
            outputs = session.run(case.inputs)
        except (compiler.InputError, compiler.RunError) as error:
            yield case.number, _failed(entry, variant, case, error)
            continue
        _refer(case, channel)
        channel.phase(f"compare: {label}, {case.name}")
        try:
            compared = case.compare(outputs, entry, random)
        except ValueError as error:
            yield case.number, _failed(entry, variant, case, error)
            continue
        if compiled.optimize and len(compiled.roundings) < len(compiled.cases):
            channel.phase(f"measure rounding errors: {label}, {case.name}")
            compiled.roundings.append(rounding_of(case.given, outputs, random))
        yield case.number, of_outputs(Outcome(entry.name, str(variant), "equal"), case.name, compared)


def _refer(case: _Case, channel: Channel) -> None:
    """Let onnxruntime compute a case, if it has not done so.

    Raises:
        ReferenceFailed: it cannot run the model.
    """
    channel.phase(f"run in onnxruntime: {case.name}")
    case.given.expected  # noqa: B018 (the first reading computes it)


def _failed(entry: Entry, variant: Variant, case: _Case, error: Exception) -> Outcome:
    return Outcome(entry.name, str(variant), "failed", (f"{case.name}: {error}",))


def _over_all_cases(entry: Entry, variant: Variant, found: Sequence[tuple[int, Outcome]], seconds: float) -> Outcome:
    """The outcome of a variant from those of its cases: the worst verdict, and the remarks on the worst cases first."""
    cases = [each for _, each in sorted(found, key=lambda pair: pair[0])]
    worst_first = sorted(cases, key=lambda each: (each.verdict == "failed", each.share), reverse=True)
    worst = together(worst_first)
    remarks = tuple(dict.fromkeys(remark for each in worst_first for remark in each.remarks))
    note = next((each.note for each in cases if each.note), "")
    advice = {remark: text for each in cases for remark, text in each.advice.items()}
    return Outcome(
        entry.name,
        str(variant),
        worst.verdict,
        remarks,
        worst.share,
        seconds,
        codes=worst.codes,
        note=note,
        advice=advice,
        outputs=worst_outputs(cases),
    )
