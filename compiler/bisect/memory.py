"""The search for the pass after which the peak memory of a run goes above the bound: that of the good side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.bisect.causes import blamed
from compiler.bisect.good import GoodFacts, GoodPlan
from compiler.bisect.result import NoGoodSide, SearchResult, Step
from compiler.bisect.subject import Compiled
from compiler.errors import CompileError
from compiler.runtime.processor import level_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.bisect.good import Good
    from compiler.bisect.subject import Subject

__all__ = ["find_memory"]


def find_memory(subject: Subject, good: Good | None = None) -> SearchResult:
    """Find the pass after which the peak memory is above that of the good side, and the first step above it.

    Without `good`, the good side is the plan without optional passes. The peak memory is a bound that prepare computes
    from the sizes of a plan, without a run.

    Raises:
        CompileError: the model is refused.
        NoGoodSide: the good side does not state its memory, or sizes are unknown.
    """
    whole = subject.whole()
    peak = _peak(whole)
    bound, of = _bound(subject, good, whole)
    numbers = {"bytes": peak, "bound": bound}
    said = f"the peak memory of a run is {peak:,} bytes, that of {of} {bound:,} bytes"
    if peak <= bound:
        return SearchResult("memory", said, numbers=numbers)

    def is_above(count: int) -> bool | None:
        tried = subject.tried(count)
        return None if tried is None else _peak(tried) > bound

    cause, why, places = blamed(subject, good, whole, is_above, "the memory is above the bound")
    plans = whole if places is None else subject.compiled(places[1])
    return SearchResult(
        "memory", said, True, numbers=numbers, cause=cause, no_cause=why, step=_first_above(plans, bound)
    )


def _peak(compiled: Sequence[Compiled]) -> int:
    """The largest peak of the plans."""
    return max(each.prepared.peak_bytes for each in compiled)


def _bound(subject: Subject, good: Good | None, whole: Sequence[Compiled]) -> tuple[int, str]:
    """The peak memory of the good side, and its name."""
    if isinstance(good, GoodFacts):
        recorded = good.at(level_of(whole[0].prepared.isa), "peak_bytes")
        assert isinstance(recorded, int)
        return recorded, f"{good.name}"
    _check_sizes(whole[0], "the model", "fix its sizes with --dim")
    if isinstance(good, GoodPlan):
        old = Compiled(good.plan, (), subject.threads)
        _check_sizes(old, good.name, "compile it again with --dim")
        return old.prepared.peak_bytes, good.name
    try:
        return _peak(subject.compiled(0)), "the plan without optional passes"
    except CompileError as error:
        raise NoGoodSide(
            f"without optional passes, the compiler refuses the model: give a good side ({error})"
        ) from error


def _check_sizes(compiled: Compiled, name: str, advice: str) -> None:
    """Refuse a plan whose memory is unknown because the sizes of its inputs are.

    Raises:
        NoGoodSide: its sizes are unknown.
    """
    symbols = sorted({each for info in compiled.plan.inputs for each in info.shape or () if isinstance(each, str)})
    if symbols and (count := compiled.prepared.unknown_steps):
        steps = f"{count} step{'s' * (count != 1)}"
        raise NoGoodSide(f"the memory of {steps} of {name} depends on {', '.join(symbols)}: {advice} {symbols[0]}=N")


def _first_above(compiled: Sequence[Compiled], bound: int) -> Step | None:
    """The first step whose values take more memory than the bound."""
    for each in compiled:
        for step in each.prepared.steps:
            if (alive := step.alive_bytes or 0) > bound:
                return Step(step.index, step.op, step.origin, f"{alive:,} bytes while it runs")
    return None
