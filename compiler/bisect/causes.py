"""The pass that causes a change: by the effect of the first passes, by recorded rewrites, or by an older plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from compiler.bisect.good import GoodFacts, GoodPlan
from compiler.bisect.halving import Culprit, culprit_of, first_wrong
from compiler.bisect.history import of_plan
from compiler.bisect.result import Cause
from compiler.bisect.subject import facts_together
from compiler.zoo.drift import changed_facts
from compiler.zoo.searches import REWRITES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.bisect.good import Good
    from compiler.bisect.subject import Compiled, Subject
    from compiler.zoo.facts import Fact, Facts

__all__ = ["Blamed", "blamed", "counts_in", "of_rewrites"]

Blamed = tuple["Cause | None", str, tuple[int, int] | None]
"""The cause, or the reason why there is none; and the numbers of passes without and with the change, if known."""


def blamed(
    subject: Subject,
    good: Good | None,
    whole: Sequence[Compiled],
    is_wrong: Callable[[int], bool | None],
    what: str,
) -> Blamed:
    """The pass that causes a change, which `is_wrong` finds in the plans with the first passes.

    Recorded rewrites say more than a search: a pass that rewrites nothing changes no plan. A search needs a plan
    without optional passes that is right. `what` is the change in words.
    """
    if isinstance(good, GoodFacts) and (cause := of_rewrites(subject, good.facts, whole)) is not None:
        return cause, "", None
    if good is None or is_wrong(0) is False:
        right, wrong = first_wrong(len(subject.names), is_wrong)
        reports = [report for each in subject.compiled(wrong) for report in each.reports]
        culprit = culprit_of(subject.names[right:wrong], reports)
        return Cause(culprit, f"{what} as soon as it runs"), "", (right, wrong)
    if isinstance(good, GoodPlan):
        cause, why = of_plan(subject, good, whole[0])
        return cause, why, None
    same = "the passes make the same rewrites as recorded"
    return None, f"{same}, and {what} without optional passes too, so no pass is the cause", None


def of_rewrites(subject: Subject, good: Facts, whole: Sequence[Compiled]) -> Cause | None:
    """The first pass whose rewrites are not those of the facts; `None` if all are the same.

    A pass that no longer exists comes first. The other passes whose rewrites differ are in `others` of the culprit.
    """
    changes = {
        name.removeprefix(REWRITES): (counts_in(old), counts_in(new))
        for name, old, new in changed_facts(good, facts_together(whole))
        if name.startswith(REWRITES)
    }
    if not changes:
        return None
    order = subject.order
    name, *others = sorted(changes, key=lambda each: order.index(each) if each in order else -1)
    before, after = changes[name]
    rules = sorted({*before, *after})
    own = [report for each in whole for report in each.reports if report.name == name]
    places = tuple(fired.origin for report in own for fired in report.fired if fired.rule in rules)
    missed = tuple(miss for report in own for miss in report.near_misses if miss.rule in rules)
    counts = "; ".join(f"{rule} {before.get(rule, 0)} → {after.get(rule, 0)}" for rule in rules)
    gone = "" if name in order else "; the compiler has no such pass"
    culprit = Culprit(name, own[0].result if own else "rewrites", places, tuple(others))
    return Cause(culprit, f"it does not rewrite as recorded: {counts}{gone}", missed)


def counts_in(fact: Fact | None) -> dict[str, int]:
    """The counts of a fact by name."""
    return {} if fact is None or isinstance(fact, int | str) else dict(fact)
