"""Infers the types and shapes of all values from those of the inputs.

A size is a number, a symbol or an expression of symbols. The pass does not trust the shapes that the file declares for
intermediate values: exporters and optimizers write wrong shapes. It also follows values that hold shapes (Shape,
Gather, Concat …); if all elements of such a value are known, the value gets a `const_value`. If a pass has
made a node for the plan, the values of the node keep the shapes from this pass. If a node is one of onnxruntime's own
operators, its expansion gives the types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import onnx_ir as ir

from compiler import contrib
from compiler.errors import CompileError, Diagnostic
from compiler.ir import origin
from compiler.ir.dtypes import to_ir
from compiler.ir.graph import PLAN_DOMAIN, graph_attributes, nodes_of, type_text
from compiler.ir.inference import Inference
from compiler.ir.shape_library import ELEMENTS
from compiler.ir.views.scan import ScanView
from compiler.lower.custom import custom_types
from compiler.lower.lower import can_lower
from compiler.plan.ops import TensorType
from compiler.rewrite.report import Fired, Missed, Pass, PassReport

__all__ = ["infer_shapes"]

_LOOP_ROUNDS = 4
"""The most inferences of a loop's body until the shapes at its start and end agree."""


def _infer_shapes(model: ir.Model, report: PassReport) -> None:
    """Infers the type and shape of every value."""
    before = {value: _Known.of(value) for node in nodes_of(model) for value in node.outputs}
    inference = _Inference(model, report)
    for value in model.graph.inputs:
        inference.context.name_anonymous_dims(value)
    inference.graph(model.graph)
    for node in nodes_of(model):
        for value in node.outputs:
            _compare(before.get(value), value, node, report)


@dataclass(frozen=True)
class _Known:
    type: ir.TypeProtocol | None
    shape: tuple[object, ...] | None

    @staticmethod
    def of(value: ir.Value) -> _Known:
        return _Known(value.type, None if value.shape is None else tuple(value.shape.dims))


def _compare(before: _Known | None, value: ir.Value, node: ir.Node, report: PassReport) -> None:
    after = _Known.of(value)
    if before == after or before is None:
        return
    report.fired.append(Fired("infer", origin.of(node)))
    old, new = type_text(before.type), type_text(after.type)
    if old and new and old != new and not value.is_graph_output():
        report.warnings.append(_contradiction(value, node, old, new))
    if before.shape is not None and after.shape is not None and _differ(before.shape, after.shape):
        report.warnings.append(_contradiction(value, node, _text(before.shape), _text(after.shape)))


def _differ(old: tuple[object, ...], new: tuple[object, ...]) -> bool:
    """Whether no value can have both shapes."""
    pairs = zip(old, new, strict=False)
    return len(old) != len(new) or any(isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs)


def _contradiction(value: ir.Value, node: ir.Node, declared: str, found: str) -> Diagnostic:
    message = f"the file declares {value.name!r} as {declared}, but the operators give {found}"
    return Diagnostic("CC0402", message, origin.of(node), severity="warning")


def _text(shape: tuple[object, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


class _Inference:
    def __init__(self, model: ir.Model, report: PassReport) -> None:
        kept = [value for node in nodes_of(model) if node.domain == PLAN_DOMAIN for value in node.outputs]
        known = Inference(model, (*model.graph.inputs, *kept), lambda node: not node.domain or can_lower(node))
        self.inference, self.context, self.report = known, known.context, report
        self.changing: set[str | None] = set()

    def graph(self, graph: ir.Graph) -> None:
        for value in graph.initializers.values():
            if value.const_value is not None:
                value.shape = ir.Shape(tuple(value.const_value.shape.numpy()))
                value.type = ir.TensorType(value.const_value.dtype)
        for node in graph:
            self.node(node)

    def node(self, node: ir.Node) -> None:
        if node.domain == PLAN_DOMAIN:
            return
        for value in node.inputs:
            if value is not None:
                self.context.name_anonymous_dims(value)
        if node.op_type in ("Loop", "Scan") and node.domain == "":
            self.loop(node)
        else:
            if node.op_type == "SequenceMap" and node.domain == "":
                _set_item_types(node)
            for nested in graph_attributes(node):
                self.graph(nested)
        if contrib.is_known(node) and not can_lower(node):
            self.expanded(node)
        else:
            self.outputs(node)
        if node.op_type in ("Loop", "Scan") and node.domain == "":
            for (_, inner, _), result in zip(_states(node), node.outputs, strict=False):
                result.shape = self.shape_after_loop(inner.shape)

    def outputs(self, node: ir.Node) -> None:
        reason = self.inference.outputs(node)
        try:
            for value, kind in zip(node.outputs, custom_types(node), strict=False):
                self.set_type(value, kind.value)
        except CompileError as error:  # the lowering reports it
            reason = error.diagnostics[0].message
        if reason is not None:
            self.report.missed.append(Missed("infer", origin.of(node), reason))

    def set_type(self, value: ir.Value, kind: TensorType) -> None:
        """Sets a type, with new symbols for unknown dimensions."""
        value.type = ir.TensorType(to_ir(kind.dtype))
        if kind.shape is not None:
            new = self.context.new_symbolic_dim
            value.shape = ir.Shape([new() if dim is None else dim for dim in kind.shape])

    def expanded(self, node: ir.Node) -> None:
        """Infers the nodes of an expansion, which does not become a part of the graph."""
        try:
            expansion = contrib.expand(node)
        except CompileError as error:
            self.report.missed.append(Missed("infer", origin.of(node), error.diagnostics[0].message))
            for value in node.outputs:
                value.shape = None
            return
        for new in expansion.new.nodes:
            self.node(new)
        for value, result in zip(node.outputs, expansion.results, strict=False):
            if result is not None:
                value.type, value.shape = result.type or value.type, result.shape
                value.metadata_props.pop(ELEMENTS, None)
                if ELEMENTS in result.metadata_props:
                    value.metadata_props[ELEMENTS] = result.metadata_props[ELEMENTS]
        expansion.discard()

    def loop(self, node: ir.Node) -> None:
        """Infers a body with the initial shapes of its states, and again without the dimensions that it changes."""
        states = _states(node)
        for first, inner, _ in states:
            inner.shape = None if first.shape is None or _scans_batch(node) else ir.Shape(first.shape.dims)
            inner.type = first.type or inner.type
        _set_body_types(node)
        for round_number in range(_LOOP_ROUNDS):
            for nested in graph_attributes(node):
                self.graph(nested)
            changed = [(inner, last) for _, inner, last in states if not self.same(inner, last)]
            if not changed:
                return
            for inner, last in changed:
                inner.shape = self.common(inner, last) if round_number < _LOOP_ROUNDS - 2 else None
        for nested in graph_attributes(node):
            self.graph(nested)

    def same(self, inner: ir.Value, last: ir.Value) -> bool:
        """Whether a state has the same shape after an iteration, except for dimensions that change."""
        if inner.shape is None or last.shape is None or inner.shape.rank() != last.shape.rank():
            return inner.shape is None
        pairs = zip(inner.shape.dims, last.shape.dims, strict=True)
        return all(one == other or self.changes(one) for one, other in pairs)

    def changes(self, dim: int | ir.SymbolicDim) -> bool:
        return isinstance(dim, ir.SymbolicDim) and dim.value in self.changing

    def common(self, inner: ir.Value, last: ir.Value) -> ir.Shape | None:
        """The shape of `inner`, before an iteration, with new symbols where `last`, after it, differs."""
        if inner.shape is None or last.shape is None or inner.shape.rank() != last.shape.rank():
            return None
        pairs = zip(inner.shape.dims, last.shape.dims, strict=True)
        return ir.Shape([one if one == other or self.changes(one) else self.new_changing() for one, other in pairs])

    def new_changing(self) -> ir.SymbolicDim:
        symbol: ir.SymbolicDim = self.context.new_symbolic_dim()
        self.changing.add(symbol.value)
        return symbol

    def shape_after_loop(self, shape: ir.Shape | None) -> ir.Shape | None:
        """The shape after the loop. Dimensions that change inside get new symbols, even without an iteration."""
        if shape is None:
            return None
        return ir.Shape([self.context.new_symbolic_dim() if self.changes(dim) else dim for dim in shape.dims])


def _states(node: ir.Node) -> list[tuple[ir.Value, ir.Value, ir.Value]]:
    """The loop's states: the initial value, the body's input, the body's output."""
    body = next(graph_attributes(node))
    if node.op_type == "Loop":
        given, inner, results = node.inputs[2:], body.inputs[2:], body.outputs[1:]
    else:
        view, first = ScanView[ir.Value].of(node), _scans_batch(node)
        count = 0 if view is None else len(node.inputs) - first - view.scanned
        given, inner, results = node.inputs[first : first + count], body.inputs[:count], body.outputs
    triples = zip(given, inner, results, strict=False)
    return [(first, state, last) for first, state, last in triples if first is not None]


def _scans_batch(node: ir.Node) -> bool:
    """Whether the node is a Scan of version 8, which scans a batch and whose first input is the sequence lengths."""
    return node.op_type == "Scan" and len(node.inputs) > len(next(graph_attributes(node)).inputs)


def _set_body_types(node: ir.Node) -> None:
    """Sets the types of a body's inputs: those of a Scan are slices of its last inputs, without one axis."""
    body = next(graph_attributes(node))
    if node.op_type == "Loop":
        for value, kind in zip(body.inputs[:2], (ir.DataType.INT64, ir.DataType.BOOL), strict=False):
            value.type, value.shape = ir.TensorType(kind), ir.Shape([])
        return
    view = ScanView[ir.Value].of(node)
    if view is None:
        return  # the lowering reports its invalid attributes
    scans = zip(node.inputs[-view.scanned :], body.inputs[-view.scanned :], view.axes_of_inputs(), strict=False)
    for outer, inner, axis in scans:
        if outer is None:
            continue
        inner.type = outer.type or inner.type
        inner.shape = None
        if not _scans_batch(node) and outer.shape is not None and -outer.shape.rank() <= axis < outer.shape.rank():
            dims = list(outer.shape.dims)
            del dims[axis]
            inner.shape = ir.Shape(dims)


def _set_item_types(node: ir.Node) -> None:
    """Sets the types of a SequenceMap's body, which reads items of sequences, of any shape, and whole tensors."""
    for outer, inner in zip(node.inputs, next(graph_attributes(node)).inputs, strict=False):
        if outer is not None and outer.type is not None:
            is_sequence = isinstance(outer.type, ir.SequenceType)
            inner.type = cast("ir.TypeProtocol", outer.type.elem_type) if is_sequence else outer.type
            inner.shape = None if is_sequence else outer.shape


infer_shapes = Pass(
    "infer_shapes",
    _infer_shapes,
    result="shapes inferred",
    requires=frozenset({"sorted", "inlined"}),
    ensures=frozenset({"shapes"}),
    needed=True,
)
