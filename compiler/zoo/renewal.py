"""New entries of a baseline, from checks of the models with both kinds of shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.zoo import tasks
from compiler.zoo.baseline import renewed
from compiler.zoo.facts import facts_of_check
from compiler.zoo.outcome import ENDED_EARLY, SHAPES, together
from compiler.zoo.outcome_judgment import outcomes_of
from compiler.zoo.task_arguments import Check
from compiler.zoo.task_runs import endings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from compiler.processes.ending import Ending
    from compiler.zoo.baseline import KnownDifference
    from compiler.zoo.facts import Facts
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Outcome, Shapes
    from compiler.zoo.task_runs import TaskProgress, TaskSettings

__all__ = ["Renewal", "renewals"]


@dataclass(frozen=True)
class Renewal:
    """The new entry of a model, `None` for a model that needs none.

    If there is a `problem`, the former entry stays, and `known` is this entry. `ending` is how the model's process
    ended. `facts` are those of the check, by kind of shapes; none with a problem.
    """

    known: KnownDifference | None
    problem: str
    ending: Ending
    facts: Mapping[Shapes, Facts]


def renewals(
    entries: Sequence[Entry],
    known: Mapping[str, KnownDifference],
    settings: TaskSettings,
    progress: TaskProgress | None = None,
    device: str = "cpu",
) -> list[Renewal]:
    """Check the models on a device, and return the new entries in the same order.

    Raises: as `endings_of`.
    """
    threads = settings.threads_for(len(entries), device)
    asked = [Check(entry, SHAPES, device, threads, settings.compiling) for entry in entries]

    def judge(one: Check, ending: Ending) -> tuple[bool, str]:
        made = _renewal(one, ending, known.get(one.entry.name))
        every = [each for mine in outcomes_of(one, ending).values() for each in mine]
        return not made.problem, str(together(every))

    endings = endings_of(tasks.check, asked, settings, judge, progress, device)
    return [_renewal(one, each, known.get(one.entry.name)) for one, each in zip(asked, endings, strict=True)]


def _renewal(asked: Check, ending: Ending, known: KnownDifference | None) -> Renewal:
    outcomes = outcomes_of(asked, ending)
    every = [each for mine in outcomes.values() for each in mine]
    if problem := next((_problem(each) for each in every if not together([each]).is_bounded), ""):
        return Renewal(known, problem, ending, {})
    worst = max(every, key=lambda each: each.share)
    said = "Refused" if worst.verdict == "refused" else "As measured"
    found = {shapes: together(mine) for shapes, mine in outcomes.items()}
    return Renewal(
        renewed(known, found, f"{said}: {'; '.join(worst.remarks[:1])}"), "", ending, facts_of_check(ending, outcomes)
    )


def _problem(outcome: Outcome) -> str:
    """The reason why a difference has no bound."""
    if outcome.verdict in ENDED_EARLY:
        return outcome.remarks[0]
    why = "it cannot be checked" if outcome.verdict == "failed" else "its difference has no bound"
    return f"{why}: {outcome.remarks[0]}"
