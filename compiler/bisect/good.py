"""The good side of a search: an older plan, or the facts that a zoo has recorded for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from compiler.bisect.result import NoGoodSide
from compiler.zoo.index import INDEX, read_index
from compiler.zoo.shapes import alike, pinned, unpinned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compiler.frontend.load import Changed
    from compiler.plan import Plan
    from compiler.zoo.facts import Fact, Facts, KnownFacts
    from compiler.zoo.index import Entry
    from compiler.zoo.outcome import Shapes

__all__ = ["Good", "GoodFacts", "GoodPlan", "entry_of", "facts_in", "sources_of"]


@dataclass(frozen=True)
class GoodPlan:
    """An older plan of the model. `name` is the name of its file."""

    plan: Plan
    name: str


@dataclass(frozen=True)
class GoodFacts:
    """The recorded facts of an entry of a zoo. `name` is the name of their file."""

    facts: Facts
    name: str
    entry: Entry

    def at(self, level: str, fact: str) -> Fact:
        """A fact of a level.

        Raises:
            NoGoodSide: it is not recorded.
        """
        found = self.facts.levels.get(level, {}).get(fact)
        if found is None:
            levels = ", ".join(name for name, facts in self.facts.levels.items() if fact in facts)
            others = f"; set CANDLE_PLAN_ISA to use those of {levels}" if levels else ""
            raise NoGoodSide(f"{self.name} has no {fact.replace('_', ' ')} of this model at the level {level}{others}")
        return found


Good = GoodPlan | GoodFacts


def entry_of(model: Path, zoo: Path | None) -> Entry:
    """The entry of a model in the zoo, by default in the nearest folder above the model whose index lists it.

    Raises:
        NoGoodSide: no index lists the model.
        OSError, ValueError: the index of `zoo` cannot be read, or is invalid.
    """
    folders = [zoo] if zoo is not None else [each for each in model.absolute().parents if (each / INDEX).is_file()]
    for folder in folders:
        for entry in read_index(folder):
            if entry.path.exists() and entry.path.samefile(model):
                return entry
    place = f"{zoo / INDEX} does not list" if zoo else f"no {INDEX} in a folder above {model} lists"
    raise NoGoodSide(f"{place} {model if zoo else 'it'}, so its recorded facts are unknown: name the folder with --zoo")


def facts_in(known: KnownFacts, name: str, entry: Entry, shapes: Shapes) -> GoodFacts:
    """The facts of an entry in a file.

    Raises:
        NoGoodSide: the file has no facts of a plan of this model.
    """
    facts = known.models.get(entry.name, {}).get(shapes)
    if facts is None:
        raise NoGoodSide(f"{name} has no {shapes} facts of the model {entry.name}")
    if not facts.has_plan:
        raise NoGoodSide(f"{name} has no facts of a plan of {entry.name}: its status is {facts.status}")
    return GoodFacts(facts, name, entry)


def sources_of(entry: Entry, shapes: Shapes) -> Sequence[Changed]:
    """The model as a check of the zoo compiles it: for each group of cases with the same shapes, or with symbolic dims.

    Raises:
        OSError, ValueError: a case cannot be read.
    """
    if shapes == "unpinned":
        return [unpinned(entry.path)]
    inputs = [entry.inputs(case) for case in entry.cases]
    return [pinned(entry.path, group[0]) for group in alike(inputs, lambda each: each)]
