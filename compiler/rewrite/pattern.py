"""Patterns: trees of operators that end in a root node, with names for the values that they match.

    Op("Mul", Var("x"), Op("Sigmoid", Var("x")))        # x · sigmoid(x), in either order

A name that occurs twice must match the same value. Patterns are data; `Pattern.match` yields every match.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import onnx_ir as ir

from compiler.ir import onnx_schema
from compiler.ir.graph import constant_of

__all__ = ["AnyOf", "Const", "Match", "Op", "Pattern", "Var"]


@dataclass
class Match:
    """A match of a pattern: values and nodes by name."""

    root: ir.Node
    values: dict[str, ir.Value | None] = field(default_factory=dict)
    named_nodes: dict[str, ir.Node] = field(default_factory=dict)
    nodes: tuple[ir.Node, ...] = ()
    """Every node of the pattern; the root comes first."""

    def __getitem__(self, name: str) -> ir.Value:
        """The value that a `Var`, a `Const` or a named `Op` matched."""
        value = self.values[name]
        if value is None:
            raise KeyError(f"{name} is an absent optional input")
        return value

    def has(self, name: str) -> bool:
        """Whether the name matched a value."""
        return self.values.get(name) is not None

    def constant(self, name: str) -> np.ndarray:
        """The elements of the constant that a name matched."""
        array = constant_of(self[name])
        if array is None:
            raise KeyError(f"{name} is not a constant")
        return array

    def node(self, name: str) -> ir.Node:
        """The node that a named `Op` matched."""
        return self.named_nodes[name]

    def with_value(self, name: str, value: ir.Value | None) -> Match | None:
        """The match in which the name has the value; `None` if the name has another value."""
        if not name:
            return self
        if name in self.values:
            return self if self.values[name] is value else None
        return Match(self.root, {**self.values, name: value}, self.named_nodes, self.nodes)

    def with_node(self, name: str, node: ir.Node) -> Match:
        """The match with one more node."""
        named = {**self.named_nodes, name: node} if name else self.named_nodes
        nodes = self.nodes if node in self.nodes else (*self.nodes, node)
        return Match(self.root, self.values, named, nodes)

    def escaping(self) -> ir.Value | None:
        """A value inside the pattern with a reader outside, so that its node must stay; `None` without one."""
        inside = set(self.nodes)
        for node in self.nodes[1:]:
            for value in node.outputs:
                if value.is_graph_output() or any(use.node not in inside for use in value.uses()):
                    return value
        return None


@dataclass(frozen=True)
class Pattern(ABC):
    """A condition on an input of a node."""

    depth: ClassVar[int] = 0
    """The number of nodes on the longest path through the pattern."""

    @abstractmethod
    def match(self, value: ir.Value | None, match: Match) -> Iterator[Match]:
        """Every match of the value that extends `match`."""


@dataclass(frozen=True)
class Var(Pattern):
    """Any value; `optional` also matches an absent input."""

    name: str = ""
    optional: bool = False

    def match(self, value: ir.Value | None, match: Match) -> Iterator[Match]:
        """See `Pattern.match`."""
        if value is None and not self.optional:
            return
        if (found := match.with_value(self.name, value)) is not None:
            yield found


@dataclass(frozen=True)
class Const(Pattern):
    """Any constant; with `equal`, only a constant whose elements all equal this number (up to rounding)."""

    name: str = ""
    equal: float | None = None

    def match(self, value: ir.Value | None, match: Match) -> Iterator[Match]:
        """See `Pattern.match`."""
        array = constant_of(value)
        if array is None or not self._is_equal(array):
            return
        if (found := match.with_value(self.name, value)) is not None:
            yield found

    def _is_equal(self, array: np.ndarray) -> bool:
        if self.equal is None:
            return True
        if array.size == 0 or array.dtype == object:
            return False
        expected = np.float64(self.equal)
        if ir.DataType.from_numpy(array.dtype).is_floating_point():
            expected = expected.astype(array.dtype).astype(np.float64)
        return bool(np.allclose(array.astype(np.float64), expected, rtol=1e-6, atol=0))


@dataclass(frozen=True)
class AnyOf(Pattern):
    """One of several patterns."""

    choices: tuple[Pattern, ...]

    def __init__(self, *choices: Pattern) -> None:
        object.__setattr__(self, "choices", choices)

    @functools.cached_property
    def depth(self) -> int:  # type: ignore[override]
        """See `Pattern.depth`."""
        return max(choice.depth for choice in self.choices)

    def match(self, value: ir.Value | None, match: Match) -> Iterator[Match]:
        """See `Pattern.match`."""
        for choice in self.choices:
            yield from choice.match(value, match)

    def roots(self) -> tuple[Op, ...]:
        """The operators that the root can be."""
        return tuple(root for choice in self.choices if isinstance(choice, AnyOf | Op) for root in choice.roots())


@dataclass(frozen=True)
class Op(Pattern):
    """The output `output` of an operator whose inputs match. With `rest`, the operator may have more inputs.

    The operator lacks the attribute `lacks`.
    `name` names both the node and this output. The two inputs of a commutative operator match in either order.
    """

    op_types: tuple[str, ...]
    inputs: tuple[Pattern, ...] = ()
    name: str = ""
    domain: str = ""
    output: int = 0
    rest: bool = False
    lacks: str = ""

    def __init__(
        self,
        op_types: str | tuple[str, ...],
        *inputs: Pattern,
        name: str = "",
        domain: str = "",
        output: int = 0,
        rest: bool = False,
        lacks: str = "",
    ) -> None:
        kinds = (op_types,) if isinstance(op_types, str) else op_types
        fields = {"op_types": kinds, "inputs": inputs, "name": name, "domain": domain, "output": output, "rest": rest}
        fields["lacks"] = lacks
        for field_name, content in fields.items():
            object.__setattr__(self, field_name, content)

    def roots(self) -> tuple[Op, ...]:
        """The only operator that the root can be."""
        return (self,)

    @functools.cached_property
    def depth(self) -> int:  # type: ignore[override]
        """See `Pattern.depth`."""
        return 1 + max((each.depth for each in self.inputs), default=0)

    def match(self, value: ir.Value | None, match: Match) -> Iterator[Match]:
        """See `Pattern.match`."""
        node = None if value is None else value.producer()
        if node is None or value is None or value.index() != self.output or node.graph is not match.root.graph:
            return
        if (found := match.with_value(self.name, value)) is not None:
            yield from self.match_node(node, found)

    @functools.cached_property
    def above(self) -> tuple[frozenset[str], ...]:
        """The operators that each input can match, if it can match only operators: a quick test before `match_node`."""
        return tuple(kinds for kinds in map(_operators, self.inputs) if kinds)

    def match_node(self, node: ir.Node, match: Match) -> Iterator[Match]:
        """Every match of a node."""
        if node.op_type not in self.op_types or node.domain != self.domain or self.lacks in node.attributes:
            return
        if len(node.inputs) > len(self.inputs) and not self.rest:
            return
        match = match.with_node(self.name, node)
        given = [*node.inputs, *[None] * (len(self.inputs) - len(node.inputs))]
        yield from _match_all(self.inputs, given, match)
        if (
            len(self.inputs) == 2
            and onnx_schema.is_commutative(self.domain, node.op_type)
            and self.inputs[0] != self.inputs[1]
        ):
            yield from _match_all(self.inputs, [given[1], given[0]], match)


def _operators(pattern: Pattern) -> frozenset[str]:
    if isinstance(pattern, Op):
        return frozenset(pattern.op_types)
    if not isinstance(pattern, AnyOf):
        return frozenset()
    choices = [_operators(choice) for choice in pattern.choices]
    return frozenset().union(*choices) if all(choices) else frozenset()


def _match_all(patterns: tuple[Pattern, ...], values: list[ir.Value | None], match: Match) -> Iterator[Match]:
    if not patterns:
        yield match
        return
    for found in patterns[0].match(values[0], match):
        yield from _match_all(patterns[1:], values[1:], found)
