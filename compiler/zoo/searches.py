"""The search of `candlec bisect` that finds the cause of a drift."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.zoo.drift import growth_of
from compiler.zoo.facts import STATUS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.zoo.drift import Drift

__all__ = ["REWRITES", "is_of_steps", "search_of", "searches"]

REWRITES = "rewrites."
"""The beginning of the names of facts that count the rewrites of a pass."""

_OF_STEPS = ("steps", "host_steps", "no_kernel", "operations")
_OF_STEPS_BY_LEVEL = ("added", "forms.")
_PEAK = ".peak_bytes"


def is_of_steps(name: str) -> bool:
    """Whether a fact counts steps, rewrites or forms of kernels. A fact of a level begins with the level's name."""
    return name in _OF_STEPS or name.startswith(REWRITES) or name.partition(".")[2].startswith(_OF_STEPS_BY_LEVEL)


def search_of(drift: Drift) -> str:
    """The argument of `--what` for a drift; an empty string if no search finds its cause."""
    if is_of_steps(drift.fact):
        return "steps"
    if drift.fact.endswith(_PEAK) and growth_of(drift.before, drift.after) > 0:
        return "memory"
    return "time" if drift.is_slower_run else ""


def searches(drifts: Sequence[Drift]) -> dict[str, Drift]:
    """The first drift for each search. A model that already has a search, or that is now refused, gets no other one."""
    done = {each.model for each in drifts if each.fact == STATUS and str(each.after).startswith("refused")}
    found: dict[str, Drift] = {}
    for what in ("steps", "memory", "time"):
        first = next((each for each in drifts if search_of(each) == what and each.model not in done), None)
        if first is not None:
            found[what] = first
            done.add(first.model)
    return found
