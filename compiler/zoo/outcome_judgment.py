"""The judgment on outcomes: which are acceptable, by INDEX.json and by a baseline."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from compiler.accuracy.compare import worst_of
from compiler.zoo.outcome import ENDED_EARLY, Outcome, together, variants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.accuracy.compare import Verdict
    from compiler.processes.ending import Ending
    from compiler.zoo.baseline import Expectation
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Shapes
    from compiler.zoo.task_arguments import Check

__all__ = ["judged", "outcomes_of", "outdated"]


def outcomes_of(asked: Check, ending: Ending) -> dict[Shapes, list[Outcome]]:
    """The outcomes of a check by kind of shapes, in the order of the variants.

    If the task ended early, the variants that it had finished keep their outcomes. All others have the verdict on the
    end of the task.
    """
    asked_for = [(shapes, str(variant)) for shapes in asked.shapes for variant in variants(asked.device)]
    known = [Outcome.from_unjudged(data) for _, data in ending.parts]
    seconds = max(ending.seconds - sum(each.seconds for each in known), 0.0)
    for _, variant in asked_for[len(known) :]:
        known.append(Outcome(asked.entry.name, variant, _verdict(ending), (ending.sentence,), seconds=seconds))
        seconds = 0.0
    found: dict[Shapes, list[Outcome]] = {shapes: [] for shapes in asked.shapes}
    for (shapes, _), outcome in zip(asked_for, known, strict=True):
        found[shapes].append(outcome)
    return found


def _verdict(ending: Ending) -> Verdict:
    """The verdict on a task that ended early."""
    if ending.kind in ("timed out", "out of memory"):
        return "timed out" if ending.kind == "timed out" else "out of memory"
    return "crashed" if ending.kind == "crashed" or ending.is_bug else "failed"


def judged(outcome: Outcome, entry: Entry, expectation: Expectation | None) -> Outcome:
    """The outcome with its `problem`, judged by the expectation for the model."""
    if outcome.verdict in ("equal", "random"):
        return outcome
    if outcome.verdict in ENDED_EARLY:
        return replace(outcome, problem=outcome.remarks[0])
    if outcome.verdict == "failed":
        return replace(outcome, problem=f"it cannot be checked: {outcome.remarks[0]}")
    found = together([outcome])
    if expectation is not None:
        return replace(outcome, problem=expectation.exceeded(found))
    if outcome.verdict != "uncertain":
        return replace(outcome, problem=f"it is {found if found.codes else 'not equal'}")
    problem = "" if entry.uncertain else "it is uncertain, and neither INDEX.json nor the baseline allows it"
    return replace(outcome, problem=problem)


def outdated(outcomes: Sequence[Outcome], expectation: Expectation | None) -> str:
    """A sentence if all variants of a model give better results than expected; else an empty string."""
    return "" if expectation is None else expectation.outdated(worst_of([each.verdict for each in outcomes]))
