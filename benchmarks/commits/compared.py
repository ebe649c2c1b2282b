"""The times of a model with two commits, and the table of many models."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compiler.bench.timing import DISAGREEMENT

__all__ = ["Compared", "Round", "mean", "table", "take_rounds"]

LEAST_ROUNDS = 5
"""A round is a turn of each commit."""
TIE = 0.01
"""A model with a ratio this close to 1 is neither faster nor slower."""

Turn = Callable[[], list[float]]
"""A turn of one commit: milliseconds of each run."""
Round = tuple[float, float]
"""The medians of the old commit's turn and of the new one's, in milliseconds."""


@dataclass(frozen=True)
class Compared:
    """The rounds of a model, for each pair of processes."""

    model: str
    pairs: tuple[tuple[Round, ...], ...]

    def milliseconds(self, index: int) -> float:
        """The median of the old commit's turns (0) or of the new one's (1)."""
        return statistics.median(each[index] for rounds in self.pairs for each in rounds)

    @property
    def ratios(self) -> list[float]:
        """The median ratio of each pair of processes."""
        return [statistics.median(new / old for old, new in rounds) for rounds in self.pairs]

    @property
    def ratio(self) -> float:
        """The new commit's time ÷ the old one's: the median of the pairs of processes."""
        return statistics.median(self.ratios)

    @property
    def quartiles(self) -> tuple[float, float]:
        """The quartiles of the ratios of all rounds."""
        low, _, high = statistics.quantiles((new / old for rounds in self.pairs for old, new in rounds), n=4)
        return low, high

    @property
    def is_settled(self) -> bool:
        """Whether the pairs of processes agree. Memory placement of code and data can slow down some processes."""
        return max(self.ratios) <= DISAGREEMENT * min(self.ratios)

    @property
    def change(self) -> str:
        """`faster` or `slower` if the quartiles and the median of every pair are on one side of 1; else nothing."""
        low, high = self.quartiles
        if min(low, *self.ratios) > 1 and self.ratio > 1 + TIE:
            return "slower"
        return "faster" if max(high, *self.ratios) < 1 and self.ratio < 1 - TIE else ""

    def data(self) -> dict[str, Any]:
        """The results as JSON data."""
        return {
            "model": self.model,
            "old": self.milliseconds(0),
            "new": self.milliseconds(1),
            "ratio": self.ratio,
            "quartiles": self.quartiles,
            "pairs": self.ratios,
            "settled": self.is_settled,
            "change": self.change,
        }


def take_rounds(old: Turn, new: Turn, seconds: float) -> tuple[Round, ...]:
    """Rounds for so many seconds, and at least `LEAST_ROUNDS`. Every other round begins with the new commit."""
    rounds: list[Round] = []
    end = time.perf_counter() + seconds
    while len(rounds) < LEAST_ROUNDS or time.perf_counter() < end:
        turns = (new, old) if len(rounds) % 2 else (old, new)
        first, second = (statistics.median(turn()) for turn in turns)
        rounds.append((second, first) if len(rounds) % 2 else (first, second))
    return tuple(rounds)


def table(compared: Sequence[Compared], failed: Mapping[str, str]) -> list[str]:
    """The lines of the table, the mean, the worst model and the failures."""
    lines = [f"{'model':24}{'old':>10}{'new':>10}{'new ÷ old':>11}{'quartiles':>15}"]
    for each in compared:
        low, high = each.quartiles
        marks = f"{each.change}{'' if each.is_settled else ' ≠'}"
        times = f"{each.milliseconds(0):10.3f}{each.milliseconds(1):10.3f}"
        lines.append(f"{each.model:24}{times}{each.ratio:11.3f}{low:9.3f}–{high:.3f}  {marks}".rstrip())
    if compared:
        worst = max(compared, key=lambda each: each.ratio)
        lines.append(f"geometric mean {mean(compared):.3f}, worst {worst.ratio:.3f} ({worst.model})")
    return [*lines, *(f"✗ {name}: {reason}" for name, reason in failed.items())]


def mean(compared: Sequence[Compared]) -> float:
    """The geometric mean of the ratios."""
    return statistics.geometric_mean(each.ratio for each in compared)
