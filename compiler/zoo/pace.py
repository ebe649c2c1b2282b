"""The pace of a model: the time of its plan as a percentage of onnxruntime's time, and when it has changed.

A pace is the fact `time` of a level: `level.avx2.time = {noise = 4, percent = 61}`. Two measurements of the same plan
differ. A pace has therefore changed only if it leaves a band around the former one.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compiler.zoo.facts import Fact

__all__ = ["TIME", "Pace", "change_text", "has_changed", "is_slower", "is_time", "most_allowed"]

TIME = "time"
"""The name of the fact in the facts of a level."""

_LEAST_BAND, _NOISES = 10, 3
"""The band in percent of the former pace: at least this much, and at least this multiple of the larger noise."""


@dataclass(frozen=True)
class Pace:
    """The time of a plan in percent of onnxruntime's time, and the noise of this number in percent of it."""

    percent: int
    noise: int

    @classmethod
    def of(cls, quotients: Sequence[float]) -> Pace:
        """The median of a plan's time ÷ onnxruntime's in several processes. The noise is half their range."""
        middle = statistics.median(quotients)
        noise = (max(quotients) - min(quotients)) / 2 / middle
        return cls(max(round(100 * middle), 1), max(round(100 * noise), 1))

    @classmethod
    def of_fact(cls, fact: Fact | None) -> Pace | None:
        """The pace that a fact holds; `None` for another fact."""
        if not isinstance(fact, Mapping) or fact.keys() != {"percent", "noise"}:
            return None
        return cls(**fact) if all(isinstance(each, int) and each > 0 for each in fact.values()) else None

    @property
    def fact(self) -> dict[str, int]:
        """The pace as a fact."""
        return {"percent": self.percent, "noise": self.noise}

    def __str__(self) -> str:
        return f"{self.percent} %"


def most_allowed(before: Pace, after: Pace) -> int:
    """The largest percentage of the later measurement that does not count as slower."""
    return before.percent * (100 + max(_LEAST_BAND, _NOISES * max(before.noise, after.noise))) // 100


def is_slower(before: Pace, after: Pace) -> bool:
    """Whether the later pace is slower beyond the band. With the arguments swapped: whether it is faster beyond it."""
    return after.percent > most_allowed(before, after)


def has_changed(before: Pace, after: Pace) -> bool:
    """Whether the later pace is slower or faster beyond the band."""
    return is_slower(before, after) or is_slower(after, before)


def is_time(name: str) -> bool:
    """Whether a fact with this name, such as `avx2.time`, is a pace."""
    return name.partition(".")[2] == TIME


def change_text(before: Pace | None, after: Pace) -> str:
    """`61 % → 93 % of onnxruntime's time (allowed: 67 %)`. A time that is not slower has no such limit."""
    said = f"{before or 'none'} → {after} of onnxruntime's time"
    if before is None or not is_slower(before, after):
        return said
    return f"{said} (allowed: {most_allowed(before, after)} %)"
