"""The pace of a model: its times compared with onnxruntime's, and when they have changed.

A pace is the fact `time` of a level: `level.avx2.time = {compile = 4, load = -2, noise = 4, percent = 61}`. Two
measurements of the same plan differ. A pace has therefore changed only if it leaves a band around the former one.
`compile` and `load` are classes, see `StartClass`. Files of earlier versions lack them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from compiler.zoo.facts import Fact

__all__ = [
    "STARTS",
    "TIME",
    "Pace",
    "StartClass",
    "change_text",
    "has_changed",
    "is_slower",
    "is_slower_run",
    "is_time",
    "lacks_classes",
    "most_allowed",
    "slower_starts",
]

TIME = "time"
"""The name of the fact in the facts of a level."""

_LEAST_BAND, _NOISES = 10, 3
"""The band in percent of the former pace: at least this much, and at least this multiple of the larger noise."""

STARTS = ("compile", "load")
"""The steps before the first run that have a class: the compilation of the model, and the load of its plan."""


@dataclass(frozen=True)
class StartClass:
    """A class of times: about 2^`power` times as long as onnxruntime takes to create a session.

    `noise` is the noise of the power.
    """

    power: int
    noise: int = 0

    @classmethod
    def of(cls, quotients: Sequence[float]) -> StartClass:
        """The class of the median in several processes. The noise is half the range of the powers."""
        powers = [math.log2(each) for each in quotients]
        return cls(round(statistics.median(powers)), round((max(powers) - min(powers)) / 2))

    @property
    def factor(self) -> float:
        """2^`power`."""
        return 2.0**self.power

    def __str__(self) -> str:
        return f"{2**self.power}" if self.power >= 0 else f"1/{2**-self.power}"

    def most_allowed(self, after: StartClass) -> StartClass:
        """The largest class of a later measurement that does not count as slower: one more, and the larger noise."""
        return StartClass(self.power + 1 + max(self.noise, after.noise))

    def is_slower(self, after: StartClass) -> bool:
        """Whether a later measurement is slower."""
        return after.power > self.most_allowed(after).power


@dataclass(frozen=True)
class Pace:
    """The time of a plan in percent of onnxruntime's time, and the noise of this number in percent of it.

    `compile` and `load` are the classes of the times before the first run, if they are known.
    """

    percent: int
    noise: int
    compile: StartClass | None = None
    load: StartClass | None = None

    @classmethod
    def of(cls, quotients: Sequence[float], starts: Mapping[str, Sequence[float]] | None = None) -> Pace:
        """The median of a plan's time ÷ onnxruntime's in several processes. The noise is half their range.

        `starts` has the same quotients for the steps before the first run.
        """
        middle = statistics.median(quotients)
        noise = (max(quotients) - min(quotients)) / 2 / middle
        found = {name: StartClass.of(each) for name, each in (starts or {}).items()}
        run = (max(round(100 * middle), 1), max(round(100 * noise), 1))
        return cls(*run, found.get("compile"), found.get("load"))

    @classmethod
    def of_fact(cls, fact: Fact | None) -> Pace | None:
        """The pace that a fact holds; `None` for another fact."""
        if not isinstance(fact, Mapping) or not all(isinstance(each, int) for each in fact.values()):
            return None
        noises = {f"{name}_noise": name for name in STARTS}
        optional = {*STARTS, *(noise for noise, name in noises.items() if name in fact)}
        if fact.keys() - optional != {"percent", "noise"} or fact["percent"] <= 0 or fact["noise"] <= 0:
            return None
        if any(fact.get(noise, 0) < 0 for noise in noises):
            return None
        starts = {name: StartClass(fact[name], fact.get(noise, 0)) for noise, name in noises.items() if name in fact}
        return cls(fact["percent"], fact["noise"], starts.get("compile"), starts.get("load"))

    @property
    def starts(self) -> dict[str, StartClass]:
        """The known classes, by step."""
        found = {"compile": self.compile, "load": self.load}
        return {name: each for name, each in found.items() if each is not None}

    @property
    def fact(self) -> dict[str, int]:
        """The pace as a fact. It does not state a class without noise as such."""
        powers = {name: each.power for name, each in self.starts.items()}
        noises = {f"{name}_noise": each.noise for name, each in self.starts.items() if each.noise}
        return {"percent": self.percent, "noise": self.noise, **powers, **noises}

    def __str__(self) -> str:
        return f"{self.percent} %"


def most_allowed(before: Pace, after: Pace) -> int:
    """The largest percentage of the later measurement that does not count as slower."""
    return before.percent * (100 + max(_LEAST_BAND, _NOISES * max(before.noise, after.noise))) // 100


def is_slower_run(before: Pace, after: Pace) -> bool:
    """Whether the runs of the later pace are slower beyond the band."""
    return after.percent > most_allowed(before, after)


def slower_starts(before: Pace, after: Pace) -> list[str]:
    """The steps before the first run whose class is larger than the former one allows. Both paces know the class."""
    known = [name for name in before.starts if name in after.starts]
    return [name for name in known if before.starts[name].is_slower(after.starts[name])]


def is_slower(before: Pace, after: Pace) -> bool:
    """Whether the later pace is slower beyond the band. With the arguments swapped: whether it is faster beyond it."""
    return is_slower_run(before, after) or bool(slower_starts(before, after))


def has_changed(before: Pace, after: Pace) -> bool:
    """Whether the later pace is slower or faster beyond the band."""
    return is_slower(before, after) or is_slower(after, before)


def lacks_classes(before: Pace, after: Pace) -> bool:
    """Whether only the later pace has a class."""
    return bool(after.starts.keys() - before.starts.keys())


def is_time(name: str) -> bool:
    """Whether a fact with this name, such as `avx2.time`, is a pace."""
    return name.partition(".")[2] == TIME


def change_text(before: Pace | None, after: Pace) -> str:
    """`61 % → 93 % of onnxruntime's time (allowed: 67 %)`. A time that is not slower has no such limit.

    The classes that have changed follow. If only these have changed, they stand alone.
    """
    said = list(_start_texts(before, after))
    if said and before is not None and not is_slower_run(before, after) and not is_slower_run(after, before):
        return "; ".join(said)
    run = f"{before or 'none'} → {after} of onnxruntime's time"
    if before is not None and is_slower_run(before, after):
        run += f" (allowed: {most_allowed(before, after)} %)"
    return "; ".join([run, *said])


def _start_texts(before: Pace | None, after: Pace) -> Iterator[str]:
    """The classes that have changed, in words: `load 1/4 → 2 times onnxruntime's creation of a session`."""
    former = {} if before is None else before.starts
    for name, new in after.starts.items():
        old = former.get(name)
        if old is not None and not old.is_slower(new) and not new.is_slower(old):
            continue
        limit = f" (allowed: {old.most_allowed(new)})" if old is not None and old.is_slower(new) else ""
        yield f"{name} {old or 'none'} → {new} times onnxruntime's creation of a session{limit}"
