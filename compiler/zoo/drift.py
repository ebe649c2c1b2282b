"""Drifts: facts of models that are not those of the file of facts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compiler.zoo.facts import STATUS, Facts
from compiler.zoo.pace import (
    TIME,
    Pace,
    change_text,
    has_changed,
    is_slower,
    is_slower_run,
    is_time,
    lacks_classes,
)
from compiler.zoo.rounding import AT_MOST, PERCENT, changed_errors, kept_bounds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from compiler.zoo.facts import Fact, KnownFacts
    from compiler.zoo.outcome import Shapes

__all__ = [
    "Drift",
    "FactsByModel",
    "changed_facts",
    "changed_times",
    "drifts",
    "growth_of",
    "levels_missing",
    "renewed_facts",
    "text_of",
    "time_drifts",
]

FactsByModel = dict[str, dict["Shapes", Facts]]
"""The facts of models by name and kind of shapes."""

_ALL = "facts"
"""The name in a drift of a model that has no facts in the file, or that is not in the folder."""


@dataclass(frozen=True)
class Drift:
    """A fact of a model that has changed. `None` stands for a fact that is not there.

    Of counts, `before` and `after` hold only those that differ. A fact of a level begins with the level's name.
    """

    model: str
    shapes: Shapes
    fact: str
    before: Fact | None
    after: Fact | None

    def __str__(self) -> str:
        """The shapes, the fact and its change: `pinned: steps: Conv 5 → 6`."""
        return f"{self.shapes}: {self.fact}: {self.change}"

    @property
    def problem(self) -> str:
        """The drift as a problem: its text, with the reason if all facts are new or gone."""
        if self.fact != _ALL:
            return str(self)
        return f"{self}: {'the folder does not have the model' if self.is_gone else 'the file does not have them'}"

    @property
    def is_gone(self) -> bool:
        """Whether the model has facts in the file, but is not in the folder."""
        return self.fact == _ALL and self.after is None

    @property
    def is_slower(self) -> bool:
        """Whether the fact is a time that is longer than the known one allows."""
        paces = self._paces
        return paces is not None and is_slower(*paces)

    @property
    def is_slower_run(self) -> bool:
        """Whether the fact is a time whose runs are longer than the known one allows."""
        paces = self._paces
        return paces is not None and is_slower_run(*paces)

    @property
    def is_new_time(self) -> bool:
        """Whether the fact is a time, and the file lacks it or one of its classes."""
        paces = self._paces
        is_new = self.before is None if paces is None else lacks_classes(*paces) and not has_changed(*paces)
        return is_time(self.fact) and is_new

    @property
    def _paces(self) -> tuple[Pace, Pace] | None:
        """The paces before and after; `None` if the fact is none, or one of them is missing."""
        before, after = Pace.of_fact(self.before), Pace.of_fact(self.after)
        return (before, after) if is_time(self.fact) and before is not None and after is not None else None

    @property
    def change(self) -> str:
        """The change: `5 → 6`, or `Conv 5 → 6; Gemm 1 → 0`."""
        if is_time(self.fact) and (pace := Pace.of_fact(self.after)):
            return change_text(Pace.of_fact(self.before), pace)
        if isinstance(self.before, int | str) or isinstance(self.after, int | str):
            return f"{text_of(self.before)} → {text_of(self.after)}"
        before, after = self.before or {}, self.after or {}
        names = sorted({*before, *after})
        return "; ".join(f"{name} {before.get(name, 0)} → {after.get(name, 0)}" for name in names)

    @property
    def data(self) -> dict[str, Any]:
        """The drift as JSON."""
        return {**vars(self)}


def drifts(known: KnownFacts, found: FactsByModel, only: Sequence[str] = ()) -> list[Drift]:
    """The drifts of the models that were checked. Without `only`, a known model that is not in the folder is one too.

    `found` has an empty entry for a model whose check ended early. A time drifts only if it is slower.
    """
    made: list[Drift] = []
    for model, by_shapes in found.items():
        before = known.models.get(model, {})
        for shapes, after in by_shapes.items():
            old = before.get(shapes)
            changes = [(_ALL, None, after.status)] if old is None else changed_facts(old, after)
            made += [Drift(model, shapes, *each) for each in changes]
    made += [each for each in time_drifts(known, found) if each.is_slower]
    gone = [] if only else [name for name in known.models if name not in found]
    return [*made, *(Drift(name, shapes, _ALL, "known", None) for name in gone for shapes in known.models[name])]


def time_drifts(known: KnownFacts, found: FactsByModel) -> list[Drift]:
    """The times that are new, slower or faster, of models and levels that the file has."""
    made: list[Drift] = []
    for model, by_shapes in found.items():
        for shapes, after in by_shapes.items():
            before = known.models.get(model, {}).get(shapes, Facts({}))
            made += [Drift(model, shapes, *each) for each in changed_times(before, after)]
    return made


def changed_facts(before: Facts, after: Facts) -> list[tuple[str, Fact | None, Fact | None]]:
    """The names of facts that have changed, with both values, the status first. Levels have to be in both.

    Times are not among them, because no two measurements are equal: see `changed_times`. A rounding error has changed
    if it is beyond its former bound.
    """
    made = [each for each in _changes(before.plan, after.plan) if each[0] not in (PERCENT, AT_MOST)]
    made += changed_errors(before.plan, after.plan)
    for level in sorted(before.levels.keys() & after.levels.keys()):
        changes = _changes(before.levels[level], after.levels[level])
        made += [(f"{level}.{name}", old, new) for name, old, new in changes if name != TIME]
    return sorted(made, key=lambda each: each[0] != STATUS)


def changed_times(before: Facts, after: Facts) -> list[tuple[str, Fact | None, Fact]]:
    """The times that are new, or that have changed beyond the band, with both values. Levels have to be in both.

    A time is new, too, if the former one lacks a class.
    """
    made: list[tuple[str, Fact | None, Fact]] = []
    for level in sorted(before.levels.keys() & after.levels.keys()):
        old, new = (Pace.of_fact(each.levels[level].get(TIME)) for each in (before, after))
        if new is not None and (old is None or has_changed(old, new) or lacks_classes(old, new)):
            made.append((f"{level}.{TIME}", old.fact if old else None, new.fact))
    return made


def growth_of(before: Fact | None, after: Fact | None) -> int:
    """The growth of a number, or of the sum of the counts; 0 for texts."""
    return _total(after) - _total(before)


def levels_missing(known: KnownFacts, found: FactsByModel) -> dict[str, list[str]]:
    """The levels of the processor that the file does not have, with the models that have facts of them."""
    missing: dict[str, list[str]] = {}
    for model, by_shapes in found.items():
        for shapes, facts in by_shapes.items():
            before = known.models.get(model, {}).get(shapes)
            for level in facts.levels if before is not None and before.levels else ():
                if before is not None and level not in before.levels and model not in missing.setdefault(level, []):
                    missing[level].append(model)
    return missing


def renewed_facts(known: KnownFacts, found: FactsByModel, only: Sequence[str] = ()) -> KnownFacts:
    """The known facts with the new ones merged in. Facts of other levels, other shapes and failed checks stay.

    A known time stays if there is no new one. Without `only`, models that are not in the folder leave the file.
    """
    models = {name: dict(each) for name, each in known.models.items() if only or name in found}
    for name, by_shapes in found.items():
        for shapes, facts in by_shapes.items():
            before = models.setdefault(name, {}).get(shapes)
            kept = before.levels if before is not None and facts.levels else {}
            levels = {level: {**_time_of(kept.get(level, {})), **each} for level, each in facts.levels.items()}
            plan = facts.plan if before is None else kept_bounds(before.plan, facts.plan)
            models[name][shapes] = Facts(plan, {**kept, **levels})
    return type(known)(known.device, models)


def _changes(before: Mapping[str, Fact], after: Mapping[str, Fact]) -> Iterator[tuple[str, Fact | None, Fact | None]]:
    """The facts that differ, by name."""
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, int | str) or isinstance(new, int | str):
            yield name, old, new
        else:
            yield name, _differing(old or {}, new or {}), _differing(new or {}, old or {})


def _time_of(level: Mapping[str, Fact]) -> dict[str, Fact]:
    """Only the time of the facts of a level, if they have it."""
    return {TIME: level[TIME]} if TIME in level else {}


def _differing(counts: Mapping[str, int], others: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in sorted(counts.items()) if others.get(name, 0) != count}


def text_of(fact: Fact | None) -> str:
    """A fact in words: a number, a text, or `Conv 5, Gemm 1`; `none` for one that is not there."""
    if not fact and not isinstance(fact, int):
        return "none"
    if isinstance(fact, int | str):
        return f"{fact:,}" if isinstance(fact, int) else fact
    return ", ".join(f"{name} {count}" for name, count in sorted(fact.items()))


def _total(fact: Fact | None) -> int:
    if fact is None or isinstance(fact, int | str):
        return fact if isinstance(fact, int) else 0
    return sum(fact.values())
