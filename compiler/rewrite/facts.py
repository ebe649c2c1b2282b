"""The facts that passes require, and which passes ensure them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from compiler.errors import Diagnostic
from compiler.rewrite.phase import Phase
from compiler.rewrite.report import Pass

__all__ = ["missing_facts"]


def missing_facts(phases: Sequence[Phase], all_passes: Sequence[Pass]) -> list[Diagnostic]:
    """An error for each fact that a pass of the phases requires, but that does not hold when the pass runs.

    A phase of one pass runs it once. Other phases may have more rounds: a fact may hold in the first round, and end
    before the second. Later rounds begin with the same facts as the second.
    """
    facts: set[str] = set()
    missing: dict[tuple[str, str], Diagnostic] = {}
    rounds = [phase.passes for phase in phases for _ in range(min(len(phase.passes), 2))]
    for step in itertools.chain.from_iterable(rounds):
        for fact in sorted(step.requires - facts):
            ensuring = ", ".join(dict.fromkeys(each.name for each in all_passes if fact in each.ensures))
            message = f"the pass {step.name} requires {fact!r}, which does not hold when it runs"
            advice = f"choose a pass that ensures it: {ensuring}" if ensuring else f"leave out {step.name}"
            missing.setdefault((step.name, fact), Diagnostic("CC0505", message, help=advice))
        facts = (facts | step.ensures) - step.ends
    return [*missing.values()]
