"""The search for the pass after which a plan is slower than the good side, by measurements in turns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from compiler.accuracy.run_inputs import made_for
from compiler.bisect.causes import blamed
from compiler.bisect.good import GoodFacts, GoodPlan
from compiler.bisect.history import first_difference
from compiler.bisect.ratio import LEAST, quotients, ratio
from compiler.bisect.result import NoGoodSide, SearchResult
from compiler.bisect.steps import first_grown
from compiler.errors import CompileError
from compiler.runtime.processor import level_of
from compiler.runtime.session import load
from compiler.zoo.pace import TIME, Pace, most_allowed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.accuracy.run_inputs import Inputs
    from compiler.bisect.good import Good
    from compiler.bisect.ratio import Ratio, Run, Timer
    from compiler.bisect.result import Step
    from compiler.bisect.subject import Compiled, Subject

__all__ = ["find_time"]


@dataclass(frozen=True)
class _Pace:
    """The runs of the good side. A plan is slower if its time is more than `bound` times `scale` times theirs."""

    run: Run
    name: str
    scale: float = 1.0
    bound: float = LEAST


def find_time(subject: Subject, given: Inputs, good: Good | None = None, *, timer: Timer = quotients) -> SearchResult:
    """Find the pass after which a run is slower than that of the good side, and the first step that differs.

    Without `good`, the good side is the plan without optional passes. Facts record the time in percent of onnxruntime's
    time. The optimized plan and the good side run in turns. If the optimized plan is slower, the search looks for the
    pass that adds more than half of the increase.

    Raises:
        CompileError: the model is refused.
        InputError, RunError: as `Session.run`, of the plans.
        NoGoodSide: the good side has no time.
        ReferenceMissing, ReferenceFailed: facts need onnxruntime, which is not installed or cannot run the model.
    """
    whole = subject.whole()[:1]
    inputs = made_for(given, whole[0].plan.inputs)
    side = _side(subject, inputs, good, whole[0])

    def measured(compiled: Compiled, bound: float) -> Ratio:
        session = compiled.loaded()
        subject.on_phase(f"timing the plan and {side.name} in turns")
        return ratio(partial(session.run, inputs), side.run, bound, timer, side.scale)

    total = measured(whole[0], side.bound)
    said = f"a run takes {total} × the time of {side.name}"
    numbers = {"ratio": total.middle, "low": total.low, "high": total.high, "bound": side.bound}
    match total.exceeds(side.bound):
        case None:
            return SearchResult("time", said, is_unclear=True, numbers=numbers)
        case False:
            return SearchResult("time", said, numbers=numbers)
    bound = total.bound

    def is_slower(count: int) -> bool | None:
        tried = subject.tried(count)
        return None if tried is None else measured(tried[0], bound).exceeds(bound)

    cause, why, places = blamed(subject, good, whole, is_slower, f"a run takes more than {bound:.2f} × the time")
    step = _step(subject, good, whole, places) if places or not isinstance(good, GoodFacts) else None
    if step is None and isinstance(good, GoodFacts):
        step = first_grown(good.facts, whole, cause)
    return SearchResult("time", said, True, numbers=numbers, cause=cause, no_cause=why, step=step)


def _step(
    subject: Subject, good: Good | None, whole: Sequence[Compiled], places: tuple[int, int] | None
) -> Step | None:
    """The first step that the pass changes; without a known place of it, the first that differs from the older plan."""
    if places is not None:
        before, after = (subject.compiled(count)[0].plan for count in places)
        return first_difference(before, after, "the plan before this pass")
    return first_difference(good.plan, whole[0].plan, good.name) if isinstance(good, GoodPlan) else None


def _side(subject: Subject, inputs: Mapping[str, Any], good: Good | None, whole: Compiled) -> _Pace:
    """The good side, ready to run."""
    if isinstance(good, GoodPlan):
        return _Pace(partial(load(good.plan, threads=subject.threads).run, inputs), good.name)
    if isinstance(good, GoodFacts):
        return _recorded(subject, inputs, good, whole)
    try:
        plain = subject.compiled(0)[0]
    except CompileError as error:
        raise NoGoodSide(
            f"without optional passes, the compiler refuses the model: give a good side ({error})"
        ) from error
    return _Pace(partial(plain.loaded().run, inputs), "the plan without optional passes")


def _recorded(subject: Subject, inputs: Mapping[str, Any], good: GoodFacts, whole: Compiled) -> _Pace:
    """The good side of facts: onnxruntime, whose time they multiply by a recorded percentage."""
    from compiler.accuracy.reference import Reference

    pace = Pace.of_fact(good.at(level_of(whole.prepared.isa), TIME))
    assert pace is not None
    run = Reference(good.entry.path, subject.threads or 1, as_written=True).prepared(inputs)
    bound = most_allowed(pace, pace) / pace.percent
    return _Pace(run, f"{good.name} ({pace} of onnxruntime's time)", pace.percent / 100, bound)
