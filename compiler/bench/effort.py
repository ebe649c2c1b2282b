"""How long and how often to time a case."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Effort"]


@dataclass(frozen=True)
class Effort:
    """How long and how often to time a case.

    `counts` are the numbers of threads. `seconds` is the time for each of them, in each of so many `processes`. `cold`
    asks for cold starts too.
    """

    counts: tuple[int, ...] = (1,)
    seconds: float = 2.0
    processes: int = 1
    cold: bool = False

    def __str__(self) -> str:
        counts = " and ".join(map(str, self.counts))
        cold = ", cold" if self.cold else ""
        return f"{counts} threads, {self.seconds:g} s, {self.processes} processes{cold}"
