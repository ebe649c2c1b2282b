"""Rules, each with a pattern, a check and a rewrite, and the driver that applies rules until none matches.

At a node, the driver tries only the rules whose root has the node's operator. It visits every node once. After a
rewrite it visits the nodes around the rewrite again, as far as patterns and checks look (`compiler.rewrite.worklist`).
Many rules on a large graph therefore cost little more than a few.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar, Generic, TypeVar, overload

import numpy as np
import onnx_ir as ir

from compiler.errors import CompileError, Diagnostic
from compiler.ir import origin
from compiler.ir.graph import graph_of, nodes_of
from compiler.ir.inference import NewNodes
from compiler.ir.shape_library import ELEMENTS
from compiler.rewrite.pattern import AnyOf, Match, Op
from compiler.rewrite.report import Fired, Missed, Pass, PassReport, note
from compiler.rewrite.worklist import Worklist

__all__ = [
    "AnyRule",
    "Evaluate",
    "FindingRule",
    "Rewriter",
    "Rule",
    "apply_rules",
    "can_be_renamed",
    "drop_dead",
    "insert",
    "replace_uses",
    "rules_pass",
]

Evaluate = Callable[[Sequence[ir.Node], Sequence[ir.Value], Mapping[str, int]], list[np.ndarray]]
"""A function that runs nodes: takes the nodes in order, the results to return and the model's opsets.

The pipeline passes it to passes.
"""

_NUMBERS = "candle_plan.numbers"
"""The key in the metadata of a graph for the last number of each generated name."""

_MOST_REWRITES = 100
"""The limit of rewrites of a run, per node of the model plus 10. A run with more rewrites does not end."""

Finding = TypeVar("Finding")
Results = ir.Value | Sequence[ir.Value]
"""The values that replace the root's outputs."""


class AnyRule(ABC):
    """A pattern, a check and a rewrite. The first line of the docstring states the rewrite as a formula."""

    pattern: ClassVar[Op | AnyOf]
    """The pattern of the root; `AnyOf` for several operators or orders."""
    allow_shared_intermediates: ClassVar[bool] = False
    """Whether values inside the pattern may have other readers: then only the root is replaced."""
    notable: ClassVar[bool] = False
    """Whether a miss is a near miss although the pattern is a single operator."""
    looks_above: ClassVar[int] = 0
    """The levels of nodes above the pattern that the check reads. After a change there, the driver tries again."""

    @property
    def name(self) -> str:
        """The rule's name, which is the class's."""
        return type(self).__name__

    @property
    def formula(self) -> str:
        """The rewrite as a formula: the first line of the docstring."""
        return (type(self).__doc__ or "").partition("\n")[0]

    @abstractmethod
    def attempt(self, match: Match) -> str | Callable[[Rewriter], Results]:
        """The rewrite of a match, or the reason against it. The reason completes "not done, because …"."""


class Rule(AnyRule):
    """A rule whose rewrite needs only the match."""

    def check(self, match: Match) -> str | None:
        """The reason against the rewrite, or `None`. The reason completes "not done, because …"."""
        return None

    @abstractmethod
    def rewrite(self, match: Match, new: Rewriter) -> Results:
        """The values that replace the root's outputs."""

    def attempt(self, match: Match) -> str | Callable[[Rewriter], Results]:
        """See `AnyRule.attempt`."""
        return self.check(match) or partial(self.rewrite, match)


class FindingRule(AnyRule, Generic[Finding]):
    """A rule whose check passes its finding to its rewrite. A finding has any type except `str`."""

    @abstractmethod
    def check(self, match: Match) -> Finding | str:
        """The data for the rewrite, or the reason against it. The reason completes "not done, because …"."""

    @abstractmethod
    def rewrite(self, match: Match, found: Finding, new: Rewriter) -> Results:
        """The values that replace the root's outputs."""

    def attempt(self, match: Match) -> str | Callable[[Rewriter], Results]:
        """See `AnyRule.attempt`."""
        found = self.check(match)
        return found if isinstance(found, str) else partial(self.rewrite, match, found)


class Rewriter:
    """Creates the nodes and constants of a rewrite.

    `version` is the opset of the nodes, if it differs from the model's. `note`, `error` and `weights` go to
    the report (`Fired`).
    """

    def __init__(self, graph: ir.Graph | None, version: int | None = None) -> None:
        self.nodes: list[ir.Node] = []
        self.constants: list[ir.Value] = []
        self.note, self.error, self.weights = "", 0.0, ""
        self._graph, self._version = graph, version

    @overload
    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int,
        domain: str = "",
        version: int | None = None,
        **attributes: Any,
    ) -> tuple[ir.Value, ...]: ...
    @overload
    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        domain: str = "",
        version: int | None = None,
        **attributes: Any,
    ) -> ir.Value: ...
    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        outputs: int | None = None,
        domain: str = "",
        version: int | None = None,
        **attributes: Any,
    ) -> ir.Value | tuple[ir.Value, ...]:
        """Creates a node. Returns its only output, or a tuple of outputs if `outputs` gives their number.

        `version` is the node's opset, if it differs from the other nodes'.
        """
        version = self._version if version is None else version
        given = ir.convenience.convert_attributes(attributes) if attributes else ()
        node = ir.Node(domain, op_type, inputs, given, num_outputs=outputs or 1, version=version)
        self.nodes.append(node)
        return node.outputs[0] if outputs is None else tuple(node.outputs)

    def like(self, node: ir.Node, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        """Creates a node with one output, the operator and version of `node`, and these inputs.

        It has the attributes of `node`, except those that are given.
        """
        given: dict[str, Any] = {**node.attributes, **attributes}
        result: ir.Value = self.op(node.op_type, *inputs, domain=node.domain, version=node.version, **given)
        return result

    def constant(self, array: np.ndarray, name: str = "constant") -> ir.Value:
        """Creates an initializer."""
        tensor = ir.Tensor(array)
        value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape), const_value=tensor)
        self.constants.append(value)
        return value


def rules_pass(name: str, rules: Sequence[AnyRule], **facts: Any) -> Pass:
    """A pass that applies rules until none matches."""
    indexed = cache(partial(_Rules, rules))

    def apply(model: ir.Model, report: PassReport) -> None:
        _apply(model, indexed(), report)

    return Pass(name, apply, **facts)


def apply_rules(model: ir.Model, rules: Sequence[AnyRule], report: PassReport) -> None:
    """Applies rules, also in nested graphs, until none matches.

    Raises:
        CompileError: the rewrites do not end, because rules undo each other.
    """
    _apply(model, _Rules(rules), report)


def _apply(model: ir.Model, rules: _Rules, report: PassReport) -> None:
    report.rules.update(rules.formulas)
    roots = [node for node in nodes_of(model) if rules.apply_to(node)]
    if roots:
        _Driver(model, rules, roots, report).run()


class _Rules:
    """Rules by the operators of their patterns' roots, and the most levels of nodes that one of them reads."""

    def __init__(self, rules: Sequence[AnyRule]) -> None:
        self.rules = rules
        self.formulas = {rule.name: rule.formula for rule in rules}
        self.depth = max((rule.pattern.depth + rule.looks_above for rule in rules), default=0)
        self.by_operator: dict[tuple[str, str], list[tuple[AnyRule, Op]]] = {}
        for rule in rules:
            for root in rule.pattern.roots():
                for op_type in root.op_types:
                    self.by_operator.setdefault((root.domain, op_type), []).append((rule, root))

    def apply_to(self, node: ir.Node) -> bool:
        """Whether a rule's root can be the node."""
        return (node.domain, node.op_type) in self.by_operator


class _Driver:
    def __init__(self, model: ir.Model, rules: _Rules, roots: Sequence[ir.Node], report: PassReport) -> None:
        self.report, self.new_nodes, self.index = report, NewNodes(model), rules.by_operator
        self.worklist = Worklist(roots, rules.apply_to, rules.depth)
        self.misses: dict[tuple[str, ir.Node], Missed] = {}
        self.left = _MOST_REWRITES * (len(self.worklist) + 10)

    def run(self) -> None:
        """Visits nodes until no node is left to visit."""
        for node in self.worklist:
            self.visit(node)
        self.report.missed.extend(self.misses.values())

    def visit(self, node: ir.Node) -> None:
        """Applies the first rule that matches."""
        above = {producer.op_type for value in node.inputs if value is not None and (producer := value.producer())}
        for rule, root in self.index[node.domain, node.op_type]:
            if any(above.isdisjoint(kinds) for kinds in root.above):
                continue
            for match in root.match_node(node, Match(node)):
                try:
                    is_done = self.apply(rule, match, node)
                except Exception as error:
                    note(error, f"in the rule {rule.name}, at {origin.of(node)}")
                    raise
                if is_done:
                    return

    def apply(self, rule: AnyRule, match: Match, node: ir.Node) -> bool:
        """Applies a rule to a match. Returns false, and records the reason, if the rule refuses the match."""
        found = _attempt(rule, match)
        if not isinstance(found, str):
            self.misses.pop((rule.name, node), None)
            self.count(rule, node, self.replace(rule, match, found))
            return True
        near = rule.notable or len(match.nodes) > 1
        self.misses[rule.name, node] = Missed(rule.name, origin.of(node), found, near)
        return False

    def count(self, rule: AnyRule, node: ir.Node, made: Rewriter) -> None:
        """Records a rewrite in the report, and stops a run that does not end."""
        self.report.fired.append(Fired(rule.name, origin.of(node), made.note, made.error, made.weights))
        self.left -= 1
        if self.left < 0:
            name, count = self.report.name, len(self.report.fired) - 1
            message = f"the pass {name} does not end: {rule.name} still applies after {count} rewrites"
            advice = f"use --skip-pass {name}, and report the bug"
            raise CompileError([Diagnostic("CC0506", message, origin.of(node), advice)])

    def replace(self, rule: AnyRule, match: Match, rewrite: Callable[[Rewriter], Results]) -> Rewriter:
        """Replaces the root's outputs with the results of a rewrite. Returns the rewriter."""
        root, graph = match.root, graph_of(match.root)
        new = Rewriter(graph)
        results = _checked(rewrite(new), rule, root)
        users = [use.node for value in root.outputs for use in value.uses()]
        replaced = [root] if rule.allow_shared_intermediates else list(match.nodes)
        origin.inherit(new.nodes, replaced)
        insert(graph, root, new)
        for old, result in zip(root.outputs, results, strict=False):
            replace_uses(old, result)
        self.new_nodes.infer(new.nodes)
        given = [value for node in replaced for value in node.inputs if value is not None]
        graph.remove(replaced, safe=True)
        self.worklist.changed([*new.nodes, *users], drop_dead(graph, given))
        return new


def _attempt(rule: AnyRule, match: Match) -> str | Callable[[Rewriter], Results]:
    escaping = None if rule.allow_shared_intermediates else match.escaping()
    return rule.attempt(match) if escaping is None else f"{escaping.name!r} is needed elsewhere too"


def _checked(results: Results, rule: AnyRule, root: ir.Node) -> list[ir.Value]:
    """The results of a rewrite as a list, which may be shorter than the root's outputs if the rest have no readers.

    Raises:
        TypeError: `rewrite` returned no values, or more values than the root has outputs.
    """
    values = [results] if isinstance(results, ir.Value) else list(results or ())
    if not 1 <= len(values) <= len(root.outputs) or not all(isinstance(each, ir.Value) for each in values):
        wanted = "one value" if len(root.outputs) == 1 else f"one to {len(root.outputs)} values"
        raise TypeError(f"{rule.name}.rewrite returns {wanted} for the outputs of {root.op_type}, not {results!r}")
    return values


def drop_dead(graph: ir.Graph, values: Sequence[ir.Value]) -> list[ir.Value]:
    """Drops the nodes whose results only replaced nodes read. Returns every value that lost a reader."""
    lost, waiting = [], list(values)
    while waiting:
        value = waiting.pop()
        lost.append(value)
        node = value.producer()
        if node is None or node.graph is not graph:
            continue
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            waiting += [value for value in node.inputs if value is not None]
            graph.remove(node, safe=True)
    return lost


def insert(graph: ir.Graph, before: ir.Node, new: Rewriter) -> None:
    """Inserts the nodes and constants of a rewrite into the graph before a node."""
    for value in new.constants:
        value.name = _fresh_name(graph, value.name or "constant")
        graph.register_initializer(value)
    graph.insert_before(before, new.nodes)


def replace_uses(old: ir.Value, new: ir.Value) -> None:
    """Replaces `old` with `new` for its readers. If `old` is a graph output, `new` gets its name.

    If `new` has no type yet, it gets the type and the shape of `old`. It also gets the symbolic elements of `old`.
    """
    if new.type is None:
        new.type, new.shape = old.type, old.shape
    if ELEMENTS in old.metadata_props:
        new.metadata_props.setdefault(ELEMENTS, old.metadata_props[ELEMENTS])
    if old.is_graph_output() and not can_be_renamed(old, new):
        new = _copy(old, new)
    if old.is_graph_output() or not new.name:
        name, old.name = old.name, None
        new.name = name
    old.replace_all_uses_with(new, replace_graph_outputs=True)


def can_be_renamed(old: ir.Value, new: ir.Value) -> bool:
    """Whether `new` can be the graph output: it is a node's result in the same graph, and no output yet."""
    mine, other = old.producer(), new.producer()
    return mine is not None and other is not None and mine.graph is other.graph and not new.is_graph_output()


def _copy(old: ir.Value, new: ir.Value) -> ir.Value:
    """The Identity of `new`, which can have the name of the graph output."""
    node = old.producer()
    if node is None or node.graph is None:
        raise ValueError(f"{old.name} is not a node's output")
    identity = ir.Node("", "Identity", [new], num_outputs=1)
    origin.inherit([identity], [node])
    identity.outputs[0].type, identity.outputs[0].shape = old.type, old.shape
    node.graph.insert_before(node, identity)
    return identity.outputs[0]


def _fresh_name(graph: ir.Graph, name: str) -> str:
    """A name that no initializer or input has: the given name, or that name with the next number."""
    taken, numbers = graph.initializers, graph.meta.setdefault(_NUMBERS, {})
    candidate = name if name not in numbers else f"{name}_{numbers[name]}"
    while candidate in taken or any(value.name == candidate for value in graph.inputs):
        numbers[name] = numbers.get(name, 0) + 1
        candidate = f"{name}_{numbers[name]}"
    return candidate
