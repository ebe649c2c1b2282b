"""Translates ONNX nodes into steps of a plan. Reports every node that cannot be lowered, not only the first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import onnx_ir as ir

from compiler import contrib
from compiler.custom import registered
from compiler.errors import CompileError, Diagnostic, did_you_mean
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import PLAN_DOMAIN, constant_of, graph_attributes, nodes_of, opset_of
from compiler.ir.origin import Origin
from compiler.lower.custom import lower_custom
from compiler.lower.node import LOWERINGS, Node
from compiler.plan import LimitError, PlanBuilder, Pool, RefusedError, Value, ops
from compiler.plan.types import refined, tensor, type_of

__all__ = ["can_lower", "lower", "lower_nodes", "node_refusals", "refusals", "unknown_operators"]

_REMOVED = frozenset(
    [
        "ATen",
        "Affine",
        "ConstantFill",
        "Crop",
        "DynamicSlice",
        "GRUUnit",
        "GivenTensorFill",
        "ImageScaler",
        "ParametricSoftplus",
        "Scale",
        "ScaledTanh",
    ]
)


def can_lower(node: ir.Node) -> bool:
    """Whether there is a lowering for the node's operator, or the program has registered a function for it."""
    return (node.domain, node.op_type) in LOWERINGS or registered(node.domain, node.op_type) is not None


def lower(
    model: ir.Model, refused: Collection[Origin] = (), weights: Mapping[ir.Value, np.ndarray] | None = None
) -> tuple[ops.Block, Pool]:
    """Translates the model's graph into the main block of a plan, and the constants and origins that it refers to.

    `weights` are inputs of the graph that become constants of the plan. If passes `refused` nodes, there is no plan,
    but the function still finds other nodes that it cannot lower.

    Raises:
        CompileError: some nodes cannot be lowered; the error reports all of them except `refused`.
    """
    return _Lowering(model.opset_imports, refused, weights).run(model.graph)


def refusals(model: ir.Model) -> list[Diagnostic]:
    """The diagnostics of `lower`, without a plan."""
    lowering = _Lowering(model.opset_imports)
    lowering.steps(model.graph)
    return lowering.diagnostics


def node_refusals(node: ir.Node, opsets: Mapping[str, int]) -> list[Diagnostic]:
    """The reasons why the lowering refuses a node; none if the type of an input is unknown."""
    lowering = _Lowering(opsets)
    builder = PlanBuilder(lowering.lower_graph)
    inputs = [value for value in node.inputs if value is not None]
    lowering.add_placeholders([value for value in inputs if constant_of(value) is None], builder)
    if any(lowering.value(value, builder) is None for value in inputs):
        return []
    lowering.node(node, builder)
    return lowering.diagnostics


def unknown_operators(model: ir.Model) -> list[Diagnostic]:
    """The operators without a lowering, an expansion, a function of the standard or a function of the model."""
    functions = {(domain, name) for domain, name, _ in onnx_schema.function_operators()}
    return [
        _unknown(node)
        for node in nodes_of(model)
        if not can_lower(node) and not contrib.is_known(node) and (node.domain, node.op_type) not in functions
        if node.op_identifier() not in model.functions
    ]


def lower_nodes(
    nodes: Sequence[ir.Node], results: Sequence[ir.Value], opsets: Mapping[str, int]
) -> tuple[ops.Block, Pool]:
    """Translates nodes into a block without inputs; their inputs are constants or results of earlier nodes.

    Raises:
        CompileError: some nodes cannot be lowered.
    """
    lowering = _Lowering(opsets)
    builder = PlanBuilder(lowering.lower_graph)
    for node in nodes:
        lowering.node(node, builder)
    if lowering.diagnostics:
        raise CompileError(lowering.diagnostics)
    outputs = [builder.values[value] for value in results]
    return builder.finish(_named(builder, outputs, [str(index) for index in range(len(outputs))])), builder.pool


_INPUT_INDEPENDENT = frozenset(["CC0201", "CC0202", "CC0203", "CC0204", "CC0208"])
"""The codes of errors that do not depend on a node's inputs."""


class _Lowering:
    def __init__(
        self,
        opsets: Mapping[str, int],
        refused: Collection[Origin] = (),
        weights: Mapping[ir.Value, np.ndarray] | None = None,
    ) -> None:
        self.opsets, self.refused, self.weights = opsets, frozenset(refused), weights or {}
        self.diagnostics: list[Diagnostic] = []
        self.has_refused = bool(refused)
        self.uncertain: set[ir.Value] = set()
        """Values that depend on refused nodes. Their dtype may be known; their shape is not."""
        self.unchecked: dict[Origin, None] = {}
        self.entered: set[ir.Graph] = set()

    def run(self, graph: ir.Graph) -> tuple[ops.Block, Pool]:
        builder, outputs = self.steps(graph)
        if self.diagnostics or self.refused or outputs is None:
            raise CompileError(self.diagnostics, self.unchecked)
        return builder.finish(_named(builder, outputs, [value.name or "" for value in graph.outputs])), builder.pool

    def steps(self, graph: ir.Graph) -> tuple[PlanBuilder, list[Value] | None]:
        """A builder with the steps of the main graph, and the graph's outputs; `None` if these cannot be lowered."""
        builder = PlanBuilder(self.lower_graph)
        for value in graph.inputs:
            name, weight = value.name or "", self.weights.get(value)
            kept = builder.input(name, self.input_type(value)) if weight is None else builder.weight(name, weight)
            builder.values[value] = kept
        try:
            return builder, self.lower_graph(graph, builder)
        except CompileError as error:
            self.diagnostics.extend(error.diagnostics)
            return builder, None

    def input_type(self, value: ir.Value) -> ops.AnyType:
        try:
            kind, problem = type_of(value), "it has no type"
        except TypeError as error:
            kind, problem = None, str(error)
        if kind is None:
            self.diagnostics.append(Diagnostic("CC0205", f"input {value.name!r}: {problem}"))
        return kind or tensor("float32")

    def lower_graph(self, graph: ir.Graph, builder: PlanBuilder) -> list[Value]:
        """Lowers a graph and returns its outputs.

        Raises:
            CompileError: some nodes cannot be lowered, or an output is undefined.
        """
        outside, self.diagnostics = self.diagnostics, []
        self.entered.add(graph)
        try:
            done = [self.node(node, builder) for node in graph]
            results = [self.value(value, builder) for value in graph.outputs]
            missing = [value.name for value, result in zip(graph.outputs, results, strict=True) if result is None]
            # After a refused node, its diagnostic is enough.
            if missing and not self.has_refused:
                self.diagnostics.append(Diagnostic("CC0106", f"nothing defines {missing}"))
            if missing or self.diagnostics or not all(done):
                raise CompileError(self.diagnostics)
        finally:
            self.has_refused |= bool(self.diagnostics)
            self.diagnostics = outside
        return [value for value in results if value is not None]

    def value(self, value: ir.Value, builder: PlanBuilder) -> Value | None:
        found = builder.value_of(value)
        if found is None and (array := constant_of(value)) is not None:
            found = builder.values[value] = builder.constant(array)
            found.name = value.name or ""
        return found

    def node(self, node: ir.Node, builder: PlanBuilder) -> bool:
        """Lowers a node; returns `False` if the node is refused."""
        builder.origin = origin.of(node)
        inputs = tuple(None if value is None else self.value(value, builder) for value in node.inputs)
        is_defined = all(value is None or found is not None for value, found in zip(node.inputs, inputs, strict=True))
        if self.is_uncertain(node):
            self.uncertain.update(node.outputs, *(graph.inputs for graph in graph_attributes(node)))
        if builder.origin in self.refused:
            is_done = False
        elif is_defined:
            is_done = self.attempt(node, inputs, builder)
        else:
            is_done = self.unreachable(node)
        if not is_done:
            self.has_refused = True
            self.add_placeholders(node.outputs, builder)
            self.check_nested(node, builder)
        return is_done

    def attempt(self, node: ir.Node, inputs: tuple[Value | None, ...], builder: PlanBuilder) -> bool:
        try:
            self.assign(node, self.lower_node(node, inputs, builder), builder)
            return True
        except LimitError as error:
            found = [Diagnostic("CC0301", str(error), origin.of(node), error.help)]
        except RefusedError as error:
            code = "CC0210" if error.for_shapes else "CC0205"
            found = [Diagnostic(code, f"{node.op_type}: {error}", origin.of(node))]
        except CompileError as error:
            found = error.diagnostics
        if self.is_uncertain(node):
            found = [each for each in found if each.code in _INPUT_INDEPENDENT or each.origin != origin.of(node)]
            if not found:
                self.unchecked[origin.of(node)] = None
        self.diagnostics.extend(found)
        return False

    def unreachable(self, node: ir.Node) -> bool:
        """Checks the operator of a node that depends on a refused node; nothing else about the node is known."""
        if not self.has_refused:
            self.diagnostics.append(Diagnostic("CC0106", "an input is not defined", origin.of(node)))
        elif can_lower(node) or contrib.is_known(node):
            self.unchecked[origin.of(node)] = None
        else:
            self.diagnostics.append(_unknown(node))
        return False

    def is_uncertain(self, node: ir.Node) -> bool:
        return any(value in self.uncertain for value in node.inputs)

    def add_placeholders(self, values: Sequence[ir.Value], builder: PlanBuilder) -> None:
        """Adds placeholders of the inferred types, so that their readers can be checked."""
        for value in values:
            kind = _known_type(value)
            if kind is not None:
                builder.values[value] = Value(kind, builder)
            if kind is None or builder.values[value].shape is None:
                self.uncertain.add(value)

    def check_nested(self, node: ir.Node, builder: PlanBuilder) -> None:
        """Checks the nested graphs of a refused node."""
        for graph in graph_attributes(node):
            if graph in self.entered or node.domain == PLAN_DOMAIN:
                continue
            inner = builder.inner()
            self.add_placeholders(graph.inputs, inner)
            try:
                self.lower_graph(graph, inner)
            except CompileError as error:
                self.diagnostics.extend(error.diagnostics)

    def lower_node(self, node: ir.Node, inputs: tuple[Value | None, ...], builder: PlanBuilder) -> tuple[Value, ...]:
        opset = opset_of(node, self.opsets.get(node.domain, 1))
        version = onnx_schema.since_version(node.domain, node.op_type, opset) or opset
        view = Node(node, inputs, version)
        lowering = LOWERINGS.get((node.domain, node.op_type))
        custom = registered(node.domain, node.op_type)
        if lowering is None and custom is not None:
            return lower_custom(view, builder, custom)
        if lowering is None:
            raise CompileError((contrib.refusals(node) if contrib.is_known(node) else ()) or [_unknown(node)])
        if version > lowering.newest:
            view.refuse(
                "CC0204",
                f"{node.op_type}-{version} is newer than {node.op_type}-{lowering.newest}, the newest supported one",
            )
        results = lowering.function(view, builder)
        view.check_all_read()
        return results if isinstance(results, tuple) else (results,)

    def assign(self, node: ir.Node, results: tuple[Value, ...], builder: PlanBuilder) -> None:
        for index, value in enumerate(node.outputs):
            if index >= len(results):
                if value.uses() or value.is_graph_output():
                    raise CompileError([_missing_output(node, index)])
                continue
            builder.values[value] = results[index]
            self.check_type(node, value, results[index], builder)

    def check_type(self, node: ir.Node, value: ir.Value, result: Value, builder: PlanBuilder) -> None:
        declared = _known_type(value)
        if isinstance(declared, ops.Type.Tensor) and result.dtype != declared.value.dtype:
            message = f"{node.op_type} computes {result.dtype} for {value.name!r}, whose type is {declared.value.dtype}"
            raise CompileError([Diagnostic("CC0207", message, origin.of(node))])
        if result.owner is builder and not result.is_stored and result not in builder.inputs:
            builder.refine(result, refined(result.type, declared))
            result.name = result.name or value.name or ""


def _known_type(value: ir.Value) -> ops.AnyType | None:
    """The type of a value in the graph; `None` if a plan does not support it."""
    try:
        return type_of(value)
    except TypeError:
        return None


_SEARCHES = {(contrib.MICROSOFT, name) for name in ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")}
_SEARCHED = (
    "export the decoder without the search, compile it with `--state auto`, and choose the tokens in a loop in Python: "
    "examples/generate.py does this with a session's state (docs/generation.md)"
)


def _unknown(node: ir.Node) -> Diagnostic:
    if node.op_type in _REMOVED:
        message = f"ONNX removed the experimental operator {node.op_type}"
        return Diagnostic("CC0208", message, origin.of(node))
    domain = f" of domain {node.domain!r}" if node.domain else ""
    advice = _SEARCHED if (node.domain, node.op_type) in _SEARCHES else _advice(node)
    if node.domain and not advice:
        advice = f'compiler.custom_op("{node.domain}::{node.op_type}", …) registers a function of your own for it'
    return Diagnostic("CC0201", f"operator {node.op_type}{domain} is not supported", origin.of(node), advice)


def _advice(node: ir.Node) -> str:
    """A suggestion: an operator with the same name in another domain, or with a similar name in this one."""
    known = {key for key in LOWERINGS if key[0] != PLAN_DOMAIN} | contrib.FAMILIES.keys()
    known |= {(domain, name) for domain, name, _ in onnx_schema.function_operators()}
    for domain in sorted(domain for domain, name in known if name == node.op_type):
        return f"there is {node.op_type} of {f'domain {domain!r}' if domain else 'the standard domain'}"
    return did_you_mean(node.op_type, (name for domain, name in known if domain == node.domain))


def _missing_output(node: ir.Node, index: int) -> Diagnostic:
    return Diagnostic("CC0205", f"output {index} of {node.op_type} is not supported", origin.of(node))


def _named(builder: PlanBuilder, outputs: list[Value], names: list[str]) -> list[Value]:
    """Names the outputs as in the model. A value with another name, or without a step, gets an Identity step."""
    results: list[Value] = []
    for value, name in zip(outputs, names, strict=True):
        taken = value in results or value in builder.inputs or value.is_stored
        result = builder(ops.Identity(), value) if taken else value
        result.name = name
        results.append(result)
    return results
