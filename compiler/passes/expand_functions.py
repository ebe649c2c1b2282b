"""Replaces operators that have no lowering, and nodes that the lowering refuses, with other operators.

There are three sources of other operators, in this order:

1. the expansion of one of onnxruntime's operators;
2. the standard's function body of an operator;
3. the model's own function body of one of onnxruntime's operators. The pass uses it if the expansion or the lowering
   refuses the node after all other nodes have been replaced, because their bodies may determine the types that the
   expansion or the lowering needs.

The lowering reports an operator of onnxruntime's that cannot be replaced, because a later pass may find these types.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import onnx_ir as ir

from compiler import contrib
from compiler.errors import CompileError, Diagnostic
from compiler.frontend.invariants import violations
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import graph_attributes, nodes_of, opset_of
from compiler.ir.origin import Origin
from compiler.passes.check_types import check_types
from compiler.passes.infer_shapes import infer_shapes
from compiler.passes.inline_functions import inline, is_supported, reached
from compiler.passes.raise_first_versions import raise_first_versions
from compiler.passes.raise_legacy import raise_legacy
from compiler.passes.sort_nodes import sort_nodes
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import insert, replace_uses
from compiler.rewrite.standard_body import call_standard_body, input_types

__all__ = ["expand_functions", "refused_expansions"]

_DEPTH = 8
"""The limit of nested expansions. The standard's function bodies nest two deep."""

_REFUSED = "candle_plan.refused_expansion"
"""The key of the metadata of a node in a body of the model: the index of the expansion's refusals in `model.meta`."""


Refusals: TypeAlias = Callable[[ir.Node, Mapping[str, int]], Sequence[Diagnostic]]
"""Returns the reasons why the lowering refuses a node of a model with these opsets."""


def expand_functions(can_lower: Callable[[ir.Node], bool], refusals: Refusals = lambda _node, _opsets: ()) -> Pass:
    """Replaces nodes for which `can_lower` is false, and nodes with `refusals` and a body in the model."""

    def expand(model: ir.Model, report: PassReport) -> None:
        """Replaces operators without a lowering with expansions and function bodies."""
        bodies = _Bodies(model, report, lambda node: refusals(node, model.opset_imports) if can_lower(node) else ())
        for _ in range(_DEPTH):
            nodes = [node for node in nodes_of(model) if not can_lower(node) and node not in bodies.wrong]
            found = [node for node in nodes if bodies.expand(node) or bodies.call_standard(node)]
            found = found or [node for node in list(nodes_of(model)) if bodies.call_own(node)]
            if not found:
                break
            report.fired.extend(Fired(f"expand {node.op_type}", origin.of(node)) for node in found)
            bodies.inline()
        bodies.keep_called()

    return Pass(
        "expand_functions",
        expand,
        result="operators expanded",
        requires=frozenset({"sorted", "inlined", "shapes"}),
        needed=True,
    )


class _Bodies:
    """The sources of bodies. A source replaces a node, or turns it into a call of a function, for `inline`."""

    def __init__(
        self, model: ir.Model, report: PassReport, refusals: Callable[[ir.Node], Sequence[Diagnostic]]
    ) -> None:
        self.model, self.report = model, report
        self.refusals = refusals
        """Why the lowering refuses a node; nothing for an operator without a lowering."""
        self.own = dict(model.functions)
        """The model's own functions: bodies of onnxruntime's operators, and the functions that these call."""
        self.called: dict[ir.OperatorIdentifier, ir.Function] = {}
        self.refused: list[Diagnostic] = []
        """The refusals of the nodes that call own bodies."""
        self.wrong: set[ir.Node] = set()

    def expand(self, node: ir.Node) -> bool:
        """Replaces one of onnxruntime's operators with its expansion."""
        if not contrib.is_known(node) or node.graph is None:
            return False
        try:
            expansion = contrib.expand(node)
        except CompileError:
            return False
        origin.inherit(_with_nested(expansion.new.nodes), [node])
        insert(node.graph, node, expansion.new)
        for old, result in zip(node.outputs, expansion.results, strict=False):
            if result is not None:
                replace_uses(old, result)
        node.graph.remove(node, safe=True)
        return True

    def call_standard(self, node: ir.Node) -> bool:
        """Turns a function of the standard into a call of its body; refuses a node whose error the body would hide."""
        opset = opset_of(node, self.model.opset_imports.get(node.domain, 1))
        if problem := _problem(node, opset):
            self.report.refused.append(Diagnostic("CC0210", f"{node.op_type}: {problem}", origin.of(node)))
            self.wrong.add(node)
            return False
        function = call_standard_body(node, opset, f"body {len(self.called)}")
        if function is None:
            return False
        self.called[function.identifier()] = function
        return True

    def call_own(self, node: ir.Node) -> bool:
        """Turns a node that its expansion or its lowering refuses into a call of the model's body."""
        function = self.own.get(node.op_identifier())
        if function is None or node in self.wrong:
            return False
        verb = "expand" if contrib.is_known(node) else "lower"
        refusals = contrib.refusals(node) if verb == "expand" else self.refusals(node)
        if not refusals:
            return False
        self.refused += refusals
        missed = (Missed(f"{verb} {node.op_type}", origin.of(node), each.message) for each in refusals)
        self.report.missed.extend(missed)
        known: list[list[Diagnostic]] = self.model.meta.setdefault(_REFUSED, [])
        around = node.metadata_props.get(_REFUSED)
        known.append([*(known[int(around)] if around else ()), *refusals])
        node.metadata_props[_REFUSED] = str(len(known) - 1)  # inlining copies the metadata to the nodes of the body
        # Another node of the operator may occur in a body that is inlined at the same time. It is no call.
        node.overload = f"body {len(self.called)}"
        self.called[node.op_identifier()] = function
        helpers = {key: each for key, each in self.own.items() if not is_supported(each)}
        self.called |= reached(helpers, [function.graph])
        return True

    def inline(self) -> None:
        """Inlines the calls, and infers types and shapes, on which further bodies may depend.

        Raises:
            CompileError: a body of the model is malformed.
        """
        self.model.functions.clear()
        self.model.functions.update(self.called)
        self.called = {}
        try:
            inline(self.model)
            self.model.functions.clear()
            if self.refused:
                self.prepare()
        except CompileError as error:
            raise CompileError([*self.refused, *error.diagnostics]) from None
        self.refused = []
        infer_shapes.run(self.model)

    def prepare(self) -> None:
        """Prepares the nodes of the model's bodies as earlier passes prepared the other nodes."""
        sort_nodes.run(self.model)
        if found := violations(self.model):
            raise CompileError(found)
        for step in (raise_first_versions, infer_shapes, check_types, raise_legacy):
            self.report.refused += step.run(self.model).refused

    def keep_called(self) -> None:
        """Removes the functions that the model no longer calls."""
        self.model.functions.clear()
        self.model.functions.update(reached(self.own, [self.model.graph]))


def refused_expansions(model: ir.Model, origins: Collection[Origin]) -> list[Diagnostic]:
    """The reasons why bodies of the model replace expansions, for the bodies with nodes of these origins."""
    known: list[list[Diagnostic]] = model.meta.get(_REFUSED, [])
    nodes = (node for node in nodes_of(model) if _REFUSED in node.metadata_props and origin.of(node) in origins)
    found = dict.fromkeys(int(node.metadata_props[_REFUSED]) for node in nodes)
    return [diagnostic for index in found for diagnostic in known[index]]


def _with_nested(nodes: list[ir.Node]) -> list[ir.Node]:
    return [*nodes, *(inner for node in nodes for graph in graph_attributes(node) for inner in graph.all_nodes())]


def _problem(node: ir.Node, opset: int) -> str | None:
    """An error that the body would hide, because the body may broadcast shapes that the operator rejects."""
    takes = [len(graph.inputs) for graph in graph_attributes(node) if node.op_type == "SequenceMap"]
    if takes and takes != [len(node.inputs)]:
        return f"the body takes {takes[0]} inputs, but the node has {len(node.inputs)}"
    return onnx_schema.contradiction(ir.serde.serialize_node(node), opset, input_types(node))
