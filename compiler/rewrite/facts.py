"""The facts that passes require, and which passes ensure them."""

from __future__ import annotations

from collections.abc import Sequence

from compiler.errors import Diagnostic
from compiler.rewrite.report import Pass

__all__ = ["missing_facts"]


def missing_facts(chosen: Sequence[Pass], all_passes: Sequence[Pass]) -> list[Diagnostic]:
    """An error for each fact that a chosen pass requires, but that does not hold when the pass runs."""
    facts: set[str] = set()
    missing = []
    for step in chosen:
        for fact in sorted(step.requires - facts):
            ensuring = ", ".join(dict.fromkeys(each.name for each in all_passes if fact in each.ensures))
            message = f"the pass {step.name} requires {fact!r}, which does not hold when it runs"
            advice = f"choose a pass that ensures it: {ensuring}" if ensuring else f"leave out {step.name}"
            missing.append(Diagnostic("CC0505", message, help=advice))
        facts = (facts | step.ensures) - step.ends
    return missing
