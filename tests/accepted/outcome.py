"""What becomes of a small model: refused, or compiled, run, and compared with onnxruntime."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

import compiler
from compiler.accuracy.compare import Comparison, compare
from compiler.accuracy.reference import Reference, ReferenceFailed
from compiler.accuracy.verify import Judge, random_outputs
from tests.accepted.small import Small


class Outcome(NamedTuple):
    """Why the compiler refuses the model; otherwise, what is wrong with the plan, empty if nothing is."""

    refusal: str = ""
    problem: str = ""


def outcomes(model: Small) -> Iterator[Outcome]:
    """The outcomes with all inputs given at run time, and, optimized, with the first one only."""
    expected = functools.cache(lambda: reference(model))
    constants = [name for name, _ in model.arrays()][1:]
    for optimize, fixed in ((False, ()), (True, constants)):
        try:
            yield _outcome(model, optimize, fixed, expected)
        except Exception as error:
            yield Outcome(problem=f"{type(error).__name__} instead of a refusal: {error}")


def reference(model: Small) -> Mapping[str, Any] | None:
    """onnxruntime's outputs; `None` if it does not run the model."""
    try:
        return Reference(model.model(), optimize=False).run(model.inputs)
    except ReferenceFailed:
        return None


def _outcome(model: Small, optimize: bool, fixed: Any, expected: Any) -> Outcome:
    proto = model.model(fixed)
    try:
        plan = compiler.compile(proto, compiler.Options(optimize=optimize))
    except compiler.CompileError as error:
        return Outcome(refusal=str(error))
    feeds = {name: value for name, value in model.inputs.items() if name not in fixed}
    session = compiler.load(plan, threads=1)
    try:
        found = session.run(feeds)
    except compiler.RunError as error:
        return Outcome(problem="" if _runs_with_others(session, feeds) else f"compiled, and the run failed: {error}")
    wanted = expected()
    if wanted is None:
        return Outcome()
    report = compare(wanted, found, random=random_outputs(plan))
    if not all(each.verdict in ("equal", "random") for each in report.outputs):
        report = Judge(proto).compare(feeds, found, random=random_outputs(plan))
    wrong = [_described(each) for each in report.outputs if not each.ok and not _is_exact(each)]
    return Outcome(problem=f"differs from onnxruntime: {'; '.join(wrong)}" if wrong else "")


def _is_exact(output: Comparison) -> bool:
    """Whether the output equals the result in double precision, from which onnxruntime's result then differs."""
    return output.error is not None and output.error <= output.allowed


def _described(output: Comparison) -> str:
    note = output.problem or output.note or f"by {output.max_abs:.3g}, allowed {output.allowed:.3g}"
    return f"{output.name} ({output.dtype}{list(output.shape)}): {note}"


def _runs_with_others(session: compiler.Session, feeds: Mapping[str, Any]) -> bool:
    """Whether other elements of the inputs are valid, such as other indices."""
    for number in (0, 1, 2):
        for kinds in ("iu", "iufb"):
            other = {
                name: np.full_like(value, number)
                if isinstance(value, np.ndarray) and value.dtype.kind in kinds
                else value
                for name, value in feeds.items()
            }
            try:
                session.run(other)
                return True
            except compiler.RunError:
                continue
    return False
