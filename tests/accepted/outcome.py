"""What becomes of a small model: refused, or compiled, run, and compared with onnxruntime."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import compiler
from compiler.accuracy.compare import TOLERANCES, Comparison, compare
from compiler.accuracy.reference import Reference, ReferenceFailed
from compiler.accuracy.verify import Judge, random_outputs
from tests.accepted.ledger import VALUES
from tests.accepted.small import Small
from tests.accepted.values import other_values

Expected = Callable[[], Mapping[str, Any] | None]


class Outcome(NamedTuple):
    """Why the compiler refuses the model; otherwise, what is wrong with the plan, empty if nothing is."""

    refusal: str = ""
    problem: str = ""


def outcomes(model: Small, optimized: Sequence[bool]) -> Iterator[Outcome]:
    """The outcomes: without optimization, with all inputs given at run time; with it, with the first one only."""
    expected = functools.cache(lambda: reference(model))
    constants = [name for name, _ in model.arrays()][1:]
    for optimize in optimized:
        try:
            yield _outcome(model, optimize, constants if optimize else (), expected)
        except Exception as error:
            yield Outcome(problem=f"{type(error).__name__} instead of a refusal: {error}")


def reference(model: Small) -> Mapping[str, Any] | None:
    """onnxruntime's outputs; `None` if it does not run the model."""
    try:
        return Reference(model.model(), optimize=False).run(model.inputs)
    except ReferenceFailed:
        return None


def _outcome(model: Small, optimize: bool, fixed: Sequence[str], expected: Expected) -> Outcome:
    try:
        plan = compiler.compile(model.model(fixed), compiler.Options(optimize=optimize))
    except compiler.CompileError as error:
        return Outcome(refusal=str(error))
    feeds = {name: value for name, value in model.inputs.items() if name not in fixed}
    try:
        found = compiler.load(plan, threads=1).run(feeds)
    except compiler.RunError as error:
        depends_on_elements = any(re.search(pattern, str(error)) for pattern in VALUES)
        if depends_on_elements and any(_runs(other, optimize, fixed) for other in other_values(model)):
            return Outcome()
        return Outcome(problem=f"compiled, and the run failed: {error}")
    wanted = expected()
    if wanted is None:
        return Outcome()
    random = random_outputs(plan)
    report = compare(wanted, found, random=random)
    if not all(each.verdict in ("equal", "random") for each in report.outputs):
        report = Judge(model.model(fixed)).compare(feeds, found, random=random)
    wrong = [_described(each) for each in report.outputs if not each.ok and not _is_exact(each)]
    return Outcome(problem=f"differs from onnxruntime: {'; '.join(wrong)}" if wrong else "")


def _runs(model: Small, optimize: bool, fixed: Sequence[str]) -> bool:
    try:
        plan = compiler.compile(model.model(fixed), compiler.Options(optimize=optimize))
        compiler.load(plan, threads=1).run({name: each for name, each in model.inputs.items() if name not in fixed})
    except (compiler.CompileError, compiler.RunError):
        return False
    return True


def _is_exact(output: Comparison) -> bool:
    """Whether floats equal the plan's result in double precision, from which onnxruntime's result then differs."""
    return output.dtype in TOLERANCES and output.error is not None and output.error <= output.allowed


def _described(output: Comparison) -> str:
    note = output.problem or output.note or f"by {output.max_abs:.3g}, allowed {output.allowed:.3g}"
    return f"{output.name} ({output.dtype}{list(output.shape)}): {note}"
