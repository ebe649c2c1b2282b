"""The results of a search: the change, the pass that causes it, and the first step that differs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from compiler.errors import Error

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compiler.bisect.halving import Culprit
    from compiler.rewrite.report import Missed
    from compiler.zoo.facts import Fact

__all__ = ["Cause", "Change", "NoGoodSide", "SearchResult", "Step", "What"]

What = Literal["memory", "time", "steps"]

Change = tuple[str, "Fact | None", "Fact | None"]
"""A fact that has changed, with both values, as in `compiler.zoo.drift.changed_facts`."""


class NoGoodSide(Error):
    """The good side does not say what the search compares."""


@dataclass(frozen=True)
class Cause:
    """The pass that causes a change, with its rewrites, and a sentence that says why it is this pass.

    `missed` are the places where its rules almost applied, with the reasons.
    """

    culprit: Culprit
    why: str
    missed: tuple[Missed, ...] = ()


@dataclass(frozen=True)
class Step:
    """A step of a plan. `note` says in words what differs."""

    index: int
    op: str
    origin: str
    note: str = ""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search. If the search finds no fault, only `said` and `numbers` have values.

    `said` is a sentence with the two numbers that the search compared, and `numbers` has these numbers by name.
    `is_unclear` says that the times differ by less than their noise. Without a `cause`, `no_cause` says why. `step` is
    the first step that differs, and `changes` are the facts that differ.
    """

    what: What
    said: str
    is_wrong: bool = False
    is_unclear: bool = False
    numbers: Mapping[str, float] = field(default_factory=dict)
    cause: Cause | None = None
    no_cause: str = ""
    step: Step | None = None
    changes: tuple[Change, ...] = ()
