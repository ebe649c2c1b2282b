"""The inputs, outputs, nodes and constants that differ between two graphs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal

from compiler.accuracy.compare import compare

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compiler.diff.graph import Constant, Graph, Node
    from compiler.diff.pairs import Pairs
    from compiler.ir.origin import Origin

__all__ = ["ConstantChange", "EndChange", "NodeChange", "constant_changes", "end_changes", "node_changes"]

Kind = Literal["added", "removed", "changed"]


@dataclass(frozen=True)
class EndChange:
    """An input or output that differs. `before` and `after` are its name and type; `None` if it is absent.

    `note` names other differences.
    """

    which: Literal["input", "output"]
    before: tuple[str, str] | None
    after: tuple[str, str] | None
    note: str = ""

    @property
    def data(self) -> dict[str, Any]:
        """The change as JSON."""
        ends = {key: each and dict(zip(("name", "type"), each, strict=True)) for key, each in self._ends}
        return {**ends, "note": self.note}

    @property
    def _ends(self) -> tuple[tuple[str, tuple[str, str] | None], ...]:
        return ("before", self.before), ("after", self.after)


@dataclass(frozen=True)
class NodeChange:
    """A node or step that differs. It has the name of its first output.

    `details` lists the differences: the name of the attribute or input, and its texts before and after.
    """

    change: Kind
    op: str
    name: str
    origin: Origin
    details: tuple[tuple[str, str | None, str | None], ...] = ()

    @property
    def data(self) -> dict[str, Any]:
        """The change as JSON."""
        details = [dict(zip(("what", "before", "after"), each, strict=True)) for each in self.details]
        return {**vars(self), "origin": str(self.origin), "details": details}


@dataclass(frozen=True)
class ConstantChange:
    """A constant that differs: its name, its types, and its sizes in bytes; `None` if it is not there.

    `max_abs` is the largest difference of two elements; `None` if they have no difference in numbers.
    """

    change: Kind
    name: str
    types: tuple[str | None, str | None]
    bytes: tuple[int | None, int | None]
    max_abs: float | None = None

    @property
    def data(self) -> dict[str, Any]:
        """The change as JSON."""
        pairs = {key: dict(zip(("before", "after"), getattr(self, key), strict=True)) for key in ("types", "bytes")}
        return {"change": self.change, "name": self.name, **pairs, "max_abs": self.max_abs}


def end_changes(before: Graph, after: Graph, pairs: Pairs) -> Iterator[EndChange]:
    """The inputs that differ, and then the outputs."""
    yield from _ends("input", before.inputs, after.inputs, pairs.inputs, {})
    moved = {old: "it is another value" for old, new in pairs.outputs.items() if pairs.input_of(old) != new}
    yield from _ends("output", before.outputs, after.outputs, pairs.outputs, moved)


def _ends(
    which: Literal["input", "output"],
    before: Mapping[str, str],
    after: Mapping[str, str],
    paired: Mapping[str, str],
    notes: Mapping[str, str],
) -> Iterator[EndChange]:
    in_order = [new for new in after if new in paired.values()]
    places = {old: place for place, old in enumerate(old for old in before if old in paired)}
    for old, kind in before.items():
        if (new := paired.get(old)) is None:
            yield EndChange(which, (old, kind), None)
            continue
        note = notes.get(old, "" if in_order[places[old]] == new else "it is at another place")
        if note or (old, kind) != (new, after[new]):
            yield EndChange(which, (old, kind), (new, after[new]), note)
    yield from (EndChange(which, None, (new, kind)) for new, kind in after.items() if new not in in_order)


def node_changes(before: Graph, after: Graph, pairs: Pairs) -> Iterator[NodeChange]:
    """The nodes that differ, in the order of the graphs: the removed and changed ones, then the added ones."""
    for place, node in enumerate(before.nodes):
        if place not in pairs.nodes:
            yield NodeChange("removed", node.op, node.name, node.origin)
        elif details := tuple(_details(node, after.nodes[pairs.nodes[place]], before, after, pairs)):
            yield NodeChange("changed", node.op, node.name, node.origin, details)
    known = set(pairs.nodes.values())
    added = (node for place, node in enumerate(after.nodes) if place not in known)
    yield from (NodeChange("added", node.op, node.name, node.origin) for node in added)


def _details(
    node: Node, other: Node, before: Graph, after: Graph, pairs: Pairs
) -> Iterator[tuple[str, str | None, str | None]]:
    """The attributes and inputs that differ between two nodes, and another number of outputs."""
    for name in sorted({*node.attributes, *other.attributes}):
        values = node.attributes.get(name), other.attributes.get(name)
        if values[0] != values[1]:
            yield name, *values
    for place, (old, new) in enumerate(zip_longest(node.inputs, other.inputs)):
        one, two = before.constants.get(old or ""), after.constants.get(new or "")
        is_equal = one is not None and two is not None and one.content == two.content
        if not is_equal and pairs.input_of(old) != new:
            yield f"input {place}", old, new
    counts = [sum(each is not None for each in outputs) for outputs in (node.outputs, other.outputs)]
    if counts[0] != counts[1]:
        yield "outputs", str(counts[0]), str(counts[1])


def constant_changes(before: Graph, after: Graph, pairs: Pairs) -> Iterator[ConstantChange]:
    """The constants that differ, in the order of the graphs: the removed and changed ones, then the added ones."""
    for old, one in before.constants.items():
        if (new := pairs.constants.get(old)) is None:
            yield ConstantChange("removed", old, (one.type, None), (one.bytes, None))
        elif one.content != after.constants[new].content:
            yield _changed(one, after.constants[new])
    known = set(pairs.constants.values())
    for new, other in after.constants.items():
        if new not in known:
            yield ConstantChange("added", new, (None, other.type), (None, other.bytes))


def _changed(one: Constant, other: Constant) -> ConstantChange:
    largest = None
    if one.type == other.type:
        [found] = compare({"": one.read()}, {"": other.read()}).outputs
        largest = found.max_abs if one.dtype != "string" else None
    return ConstantChange("changed", one.id, (one.type, other.type), (one.bytes, other.bytes), largest)
