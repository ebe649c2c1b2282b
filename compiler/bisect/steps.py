"""The search for the pass that gives a plan other steps than the good side: a rule applies too seldom or too often.

The results are the same. Only the facts of the plan differ: its steps, its rewrites and the forms of its kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from compiler.bisect.causes import counts_in, of_rewrites
from compiler.bisect.good import GoodFacts
from compiler.bisect.history import first_difference, of_plan
from compiler.bisect.result import SearchResult, Step
from compiler.bisect.subject import facts_together
from compiler.diff import difference
from compiler.zoo.drift import changed_facts
from compiler.zoo.searches import is_of_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.bisect.good import Good, GoodPlan
    from compiler.bisect.result import Cause, Change
    from compiler.bisect.subject import Compiled, Subject
    from compiler.zoo.facts import Fact, Facts

__all__ = ["find_steps", "first_grown"]


def find_steps(subject: Subject, good: Good) -> SearchResult:
    """Find the pass that gives a plan other steps than the good side, and the first step that differs.

    Raises:
        CompileError: the model is refused.
    """
    whole = subject.whole()
    if isinstance(good, GoodFacts):
        return _by_facts(subject, good, whole)
    return _by_plan(subject, good, whole[0])


def _by_facts(subject: Subject, good: GoodFacts, whole: Sequence[Compiled]) -> SearchResult:
    changes = _changes(good.facts, whole)
    if not changes:
        return SearchResult("steps", f"the steps, rewrites and kernels are those of {good.name}")
    cause = of_rewrites(subject, good.facts, whole)
    why = "" if cause else "the passes make the same rewrites as recorded, so no pass is the cause"
    said = f"the steps, rewrites or kernels are not those of {good.name}"
    step = first_grown(good.facts, whole, cause)
    return SearchResult("steps", said, True, cause=cause, no_cause=why, step=step, changes=changes)


def _by_plan(subject: Subject, good: GoodPlan, whole: Compiled) -> SearchResult:
    found = difference(good.plan, whole.plan)
    changes = tuple(each for each in found.facts if is_of_steps(each[0]))
    if not found.nodes and not changes:
        return SearchResult("steps", f"the steps and kernels are those of {good.name}")
    cause, why = of_plan(subject, good, whole)
    counts = {each.op: (each.before, each.after) for each in found.operators if each.before != each.after}
    if counts:
        before, after = ({op: pair[side] for op, pair in counts.items()} for side in (0, 1))
        changes = (("steps", before, after), *changes)
    step = first_difference(good.plan, whole.plan, good.name)
    said = f"the steps or kernels are not those of {good.name}"
    return SearchResult("steps", said, True, cause=cause, no_cause=why, step=step, changes=changes)


def _changes(good: Facts, whole: Sequence[Compiled]) -> tuple[Change, ...]:
    return tuple(each for each in changed_facts(good, facts_together(whole)) if is_of_steps(each[0]))


def first_grown(good: Facts, whole: Sequence[Compiled], cause: Cause | None) -> Step | None:
    """The first step of an operator or of a kernel form that the plan has more often than recorded.

    Steps whose operator or form is not recorded at all come first: those certainly differ. Then come steps at the
    places of the cause, because facts do not say which of several equal steps are new.
    """
    grown = list(_grown(good, whole))
    places = [] if cause is None else [*cause.culprit.places, *(each.origin for each in cause.missed)]
    nodes = {name for each in places for name in each.nodes}
    in_order = sorted(grown, key=lambda each: (not each.is_new, not each.is_new and nodes.isdisjoint(each.nodes)))
    return in_order[0].step if in_order else None


class _Grown(NamedTuple):
    """A step that the plan has more often than recorded, or that is new, and the nodes of its origin."""

    step: Step
    is_new: bool
    nodes: tuple[str, ...]


def _grown(good: Facts, whole: Sequence[Compiled]) -> Iterator[_Grown]:
    """The steps that the plan has more often than recorded, in the plan's order."""
    more: dict[tuple[str, str | None], tuple[int, str]] = {}
    for name, old, new in changed_facts(good, facts_together(whole)):
        level, _, op = name.partition("forms.")
        if name == "steps":
            more |= {(each, None): (was, f"{each} {was} → {now}") for each, was, now in _more(old, new)}
        elif level != name and op:
            more |= {(op, each): (was, f"{op} as {each} {was} → {now}") for each, was, now in _more(old, new)}
    for each in whole:
        document = each.plan.document
        for step in each.prepared.steps:
            found = more.get((step.op, None)) or more.get((step.op, step.kernel))
            if found is not None:
                own = document["main"]["steps"][step.index]["origin"] if step.depth == 0 else None
                nodes = () if own is None else tuple(document["origins"][own]["nodes"])
                yield _Grown(Step(step.index, step.op, step.origin, found[1]), found[0] == 0, nodes)


def _more(old: Fact | None, new: Fact | None) -> Iterator[tuple[str, int, int]]:
    """The names whose counts have grown, with both counts."""
    before, after = counts_in(old), counts_in(new)
    for name, count in after.items():
        if count > before.get(name, 0):
            yield name, before.get(name, 0), count
