"""A slice of a zoo: models that together have every operator, rule and kernel form of the whole zoo, in little time.

Networks differ in the chains of operators that they fuse. A chain, such as `fuse MatMul + Add + Gelu`, counts as its
pairs of neighbors: `MatMul + Add` and `Add + Gelu`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compiler.zoo.facts import Fact, Facts
    from compiler.zoo.records import Record, ResultName

__all__ = ["KINDS", "Slice", "slice_of"]

Kind = Literal["operator", "rule", "form"]
KINDS: tuple[Kind, ...] = ("operator", "rule", "form")
"""The kinds of items of a slice: operators of plans, rules of passes, and forms of kernels at a level."""

Item = tuple[Kind, str]

_LEAST_SECONDS = 0.01
"""The time that a model counts at least, so that no model is free."""


@dataclass(frozen=True)
class Slice:
    """The models of a slice in alphabetical order, the seconds of their checks, and the features that they cover.

    A feature is an operator, a rule or a form of a kernel.

    `whole` has the same seconds of all models. The seconds are `None` if the file does not have them.
    """

    models: Mapping[str, float | None]
    whole: Mapping[str, float | None]
    items: frozenset[Item]

    @property
    def counts(self) -> dict[Kind, int]:
        """The number of items of each kind."""
        found = Counter(kind for kind, _ in self.items)
        return {kind: found[kind] for kind in KINDS}

    @property
    def data(self) -> dict[str, Any]:
        """The slice as JSON."""
        models = [{"name": name, "seconds": seconds} for name, seconds in self.models.items()]
        return {"models": models, "of": len(self.whole), "seconds": _sum(self.whole), "covered": self.counts}

    @property
    def seconds(self) -> tuple[float | None, float | None]:
        """The seconds of the slice and of the whole zoo; `None` if they are not known."""
        return _sum(self.models), _sum(self.whole)


def slice_of(records: Mapping[ResultName, Record], overhead: float = 0.0) -> Slice:
    """The slice of a zoo with these records. A model takes `overhead` seconds in addition to its checks.

    The choice is greedy (Chvátal, "A greedy heuristic for the set-covering problem", 1979): the next model is the one
    that adds the most items a second. Models that later ones make superfluous leave the slice again, the slowest first.
    Models without known times count alike. Equal records give the same slice.
    """
    items: dict[str, set[Item]] = {}
    seconds: dict[str, float | None] = {}
    for name, record in records.items():
        items.setdefault(name.model, set()).update(_items(record.facts) if record.facts else ())
        known = seconds.setdefault(name.model, None)
        seconds[name.model] = known if record.seconds is None else (known or 0.0) + record.seconds
    costs = {name: 1.0 if each is None else max(each + overhead, _LEAST_SECONDS) for name, each in seconds.items()}
    chosen = _without_superfluous(_greedy(items, costs), items, costs)
    covered = frozenset(item for each in items.values() for item in each)
    return Slice({name: seconds[name] for name in sorted(chosen)}, seconds, covered)


def _items(facts: Facts) -> Iterator[Item]:
    """The items of a model with these facts."""
    yield from (("operator", op) for op in _counts(facts.plan.get("steps")))
    yield from (("rule", each) for name in _names(facts.plan, "rewrites.") for each in _pairs(name))
    for level, found in facts.levels.items():
        yield from (("form", f"{level}: {name}") for name in _names(found, "forms."))


def _names(facts: Mapping[str, Fact], prefix: str) -> Iterator[str]:
    """The counted names of the facts with a prefix, such as `Conv: direct` of `forms.Conv`."""
    for fact, counts in facts.items():
        if fact.startswith(prefix):
            yield from (f"{fact.removeprefix(prefix)}: {name}" for name in _counts(counts))


def _pairs(rule: str) -> list[str]:
    """The pairs of neighbors in a rule that fuses a chain; another rule as it is."""
    fusing, is_chain, chain = rule.partition(": fuse ")
    pairs = itertools.pairwise(chain.split(" + "))
    return [f"{fusing}: fuse {' + '.join(pair)}" for pair in pairs] if is_chain else [rule]


def _counts(fact: Fact | None) -> Mapping[str, int]:
    return {} if fact is None or isinstance(fact, int | str) else fact


def _greedy(items: Mapping[str, set[Item]], costs: Mapping[str, float]) -> list[str]:
    left = set().union(*items.values())
    chosen: list[str] = []
    while left:
        best = min(items, key=lambda name: (-len(items[name] & left) / costs[name], -len(items[name] & left), name))
        chosen.append(best)
        left -= items[best]
    return chosen


def _without_superfluous(chosen: list[str], items: Mapping[str, set[Item]], costs: Mapping[str, float]) -> list[str]:
    counts = Counter(item for name in chosen for item in items[name])
    kept = list(chosen)
    for name in sorted(chosen, key=lambda each: (-costs[each], each)):
        if all(counts[item] > 1 for item in items[name]):
            kept.remove(name)
            counts.subtract(items[name])
    return kept


def _sum(seconds: Mapping[str, float | None]) -> float | None:
    known = [each for each in seconds.values() if each is not None]
    return sum(known) if known else None
