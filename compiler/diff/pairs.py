"""Pairs of nodes, values and constants that correspond to each other in two graphs.

Names alone do not tell: exporters number values, so that one more node gives all later values other names. The search
begins at the inputs. Two nodes correspond if they have the same operator and if their inputs correspond. It then goes
back from the outputs. Names pair only nodes that neither direction reaches.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiler.diff.graph import Graph, Node

__all__ = ["Pairs"]


class Pairs:
    """The pairs of two graphs.

    Each field maps the first graph to the second, one-to-one. `inputs`, `outputs` and `values` map value ids,
    `constants` maps constant ids, and `nodes` maps node positions.
    """

    def __init__(self, before: Graph, after: Graph) -> None:
        self._before, self._after = before, after
        self.inputs = _ends(before.inputs, after.inputs)
        self.outputs = _ends(before.outputs, after.outputs)
        self.constants: dict[str, str] = {}
        self.values = {old: new for old, new in self.inputs.items() if old not in before.constants}
        self.nodes: dict[int, int] = {}
        self._taken: set[int] = set()
        self._taken_values = set(self.values.values())
        self._taken_constants: set[str] = set()
        self._by_form = _by_form(after)
        for old, new in self.outputs.items():
            self._pair_values(old, new)
        while self._forward() or self._backward() or self._by_name():
            pass
        for name in before.producers:  # of nodes with different operators
            if name in before.named & after.named and name in after.producers:
                self._pair_values(name, name)
        self._pair_other_constants()

    def input_of(self, id: str | None) -> str | None:
        """The value or constant of the second graph that corresponds to one of the first; `None` without one."""
        return None if id is None else self.constants.get(id, self.values.get(id))

    def _left(self) -> list[int]:
        return [place for place in range(len(self._before.nodes)) if place not in self.nodes]

    def _forward(self) -> bool:
        """Pair nodes whose inputs correspond. Of several candidates, the most similar one counts."""
        count = len(self.nodes)
        for place in self._left():
            node = self._before.nodes[place]
            inputs = [self._form_of_input(each) for each in node.inputs]
            known = self._by_form.get((node.op, tuple(inputs)), ()) if "" not in inputs else ()
            if candidates := [each for each in known if each not in self._taken]:
                self._pair(place, min(candidates, key=lambda at: self._unlike(node, self._after.nodes[at])))
        return len(self.nodes) > count

    def _unlike(self, node: Node, other: Node) -> tuple[int, bool, bool]:
        """A key that sorts the most similar node first."""
        held = self._before.constants, self._after.constants
        pairs = zip(node.inputs, other.inputs, strict=True)
        constants = [
            (one, another) for one, another in pairs if one in held[0] and another in held[1] and one != another
        ]
        unlike = sum(held[0][one].content != held[1][another].content for one, another in constants if one and another)
        return unlike, node.attributes != other.attributes, node.name != other.name

    def _form_of_input(self, id: str | None) -> str | None:
        """An input in the form of the second graph; an empty text if nothing corresponds to it yet."""
        if id in self._before.constants:
            return _CONSTANT
        return None if id is None else self.values.get(id, "")

    def _backward(self) -> bool:
        """Pair the producers of values that correspond, if they have the same operator."""
        count = len(self.nodes)
        for place in reversed(self._left()):
            node = self._before.nodes[place]
            found = (self._after.producers.get(self.values.get(each or "", "")) for each in node.outputs)
            self._pair_first(place, [at for at in found if at is not None])
        return len(self.nodes) > count

    def _by_name(self) -> bool:
        """Pair nodes that have the same operator, and an output with the same name."""
        count = len(self.nodes)
        names = self._before.named & self._after.named
        for place in self._left():
            found = (self._after.producers.get(each) for each in self._before.nodes[place].outputs if each in names)
            self._pair_first(place, [at for at in found if at is not None])
        return len(self.nodes) > count

    def _pair_first(self, place: int, candidates: Iterable[int]) -> None:
        """Pair a node with the first candidate that has its operator, and then the producers of their inputs."""
        node = self._before.nodes[place]
        for at in candidates:
            other = self._after.nodes[at]
            if at not in self._taken and other.op == node.op:
                self._pair(place, at)
                for old, new in zip(node.inputs, other.inputs, strict=False):
                    if self._have_one_operator(old, new):
                        self._pair_values(old, new)
                return

    def _have_one_operator(self, old: str | None, new: str | None) -> bool:
        one, other = self._before.producers.get(old or ""), self._after.producers.get(new or "")
        if one is None or other is None or one in self.nodes or other in self._taken:
            return False
        return self._before.nodes[one].op == self._after.nodes[other].op

    def _pair(self, place: int, at: int) -> None:
        """Pair two nodes, their outputs, and the constants among their inputs."""
        node, other = self._before.nodes[place], self._after.nodes[at]
        self.nodes[place] = at
        self._taken.add(at)
        for old, new in zip(node.outputs, other.outputs, strict=False):
            self._taken_values.discard(self.values.pop(old or "", ""))  # a guess
            self._pair_values(old, new)
        for old, new in zip(node.inputs, other.inputs, strict=False):
            if old in self._before.constants and new in self._after.constants:
                self._pair_constants(old, new)

    def _pair_values(self, old: str | None, new: str | None) -> None:
        if old and new and old not in self.values and new not in self._taken_values:
            self.values[old] = new
            self._taken_values.add(new)

    def _pair_constants(self, old: str | None, new: str | None) -> None:
        if old and new and old not in self.constants and new not in self._taken_constants:
            self.constants[old] = new
            self._taken_constants.add(new)

    def _pair_other_constants(self) -> None:
        """Pair the constants that no pair of nodes reads: by their names, and then by their content."""
        names = self._before.named & self._after.named
        for id in self._before.constants:
            if id in names and id in self._after.constants:
                self._pair_constants(id, id)
        free = defaultdict(list)
        for id, each in self._after.constants.items():
            if id not in self._taken_constants:
                free[each.content].append(id)
        for id, each in self._before.constants.items():
            if id not in self.constants and free[each.content]:
                self._pair_constants(id, free[each.content].pop(0))


_CONSTANT = "constant"
"""The form of an input that is a constant. A value with this name has the same form, which only gives a candidate."""


def _by_form(graph: Graph) -> dict[tuple[str, tuple[str | None, ...]], list[int]]:
    """The places of nodes by operator and inputs."""
    found = defaultdict(list)
    for place, node in enumerate(graph.nodes):
        inputs = tuple(_CONSTANT if each in graph.constants else each for each in node.inputs)
        found[node.op, inputs].append(place)
    return dict(found)


def _ends(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The inputs or outputs with the same name; and others at the same place among the rest, if their types are equal.

    A node that only one of them has must not shift the others.
    """
    found = {each: each for each in before if each in after}
    rest: Sequence[Sequence[str]] = [[each for each in ends if each not in found] for ends in (before, after)]
    pairs = zip(*rest, strict=False)
    return found | {old: new for old, new in pairs if before[old] == after[new]}
