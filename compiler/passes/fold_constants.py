"""Computes nodes with constant inputs at compile time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import onnx_ir as ir

from compiler.custom import registered
from compiler.errors import CompileError, Diagnostic
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import array_of, constant_of, graph_attributes, opset_of, static_shape
from compiler.rewrite.report import Fired, Missed, Pass, PassReport
from compiler.rewrite.rule import Evaluate

__all__ = ["constant_nodes", "fold_constants", "folding"]

_MOST_BYTES, _MOST_GROWTH = 1 << 20, 8
"""The limits of a result: in bytes, and as a multiple of its inputs (8 for weights of 4 bits)."""
_MOST_ADDED_BYTES = 1 << 26
"""The limit, in bytes, by which all results together may exceed their inputs."""

_INDEX_TYPES = (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)
_INTEGERS = frozenset(dtype for dtype in ir.DataType if dtype.is_integer()) | {ir.DataType.BOOL}
_INDEX_BYTES = 4096
"""The types of results that count as indices, the types that count if all inputs are integers, and the largest size of
such a result in bytes. The second kind lets the compiler find a division by zero without optimization too."""


def fold_constants(evaluate: Evaluate, *, only_indices: bool = False) -> Pass:
    """The pass that folds with `evaluate`; with `only_indices`, only small integers, such as shapes and axes."""
    if only_indices:
        return folding("fold_indices", evaluate, _is_index, needed=True)
    return folding("fold_constants", evaluate, lambda node: True, ends=frozenset({"stored weights"}))


def folding(
    name: str,
    evaluate: Evaluate,
    selects: Callable[[ir.Node], bool],
    *,
    needed: bool = False,
    ends: frozenset[str] = frozenset(),
) -> Pass:
    """A pass that folds with `evaluate` the nodes for which `selects` is true.

    It refuses a model with a node that always fails, except in nested graphs, which may never run.
    """

    def fold(model: ir.Model, report: PassReport) -> None:
        """Computes nodes whose inputs are constants."""
        folding = _Folding(evaluate, model, report, selects)
        folding.graph(model.graph)
        if folding.failures:
            raise CompileError(folding.failures)

    requires = frozenset({"sorted", "shapes"})
    return Pass(name, fold, result="nodes computed", requires=requires, ends=ends, needed=needed)


def constant_nodes(
    graph: ir.Graph, opsets: Mapping[str, int], fits: Callable[[ir.Node], bool] = lambda node: True
) -> list[ir.Node]:
    """The nodes of a graph, in order, that depend only on constants and for which `fits` is true."""
    folded: set[ir.Value] = set()
    nodes = []
    for node in graph:
        is_constant = node.op_identifier() == ("", "Constant", "")
        if is_constant or (_can_fold(node, folded, opsets) and fits(node)):
            folded.update(node.outputs)
            nodes.append(node)
    return nodes


def _can_fold(node: ir.Node, folded: set[ir.Value], opsets: Mapping[str, int]) -> bool:
    given = [value for value in node.inputs if value is not None]
    if registered(node.domain, node.op_type) is not None:
        return False  # only runs call the function of a custom operator
    if not given or not all(value in folded or constant_of(value) is not None for value in given):
        return False
    opset = opset_of(node, opsets.get(node.domain, 1))
    is_plain = onnx_schema.is_deterministic(node.domain, node.op_type, opset) and not any(graph_attributes(node))
    return is_plain and all(isinstance(value.type, ir.TensorType) for value in node.outputs)


class _Folding:
    def __init__(
        self, evaluate: Evaluate, model: ir.Model, report: PassReport, selects: Callable[[ir.Node], bool]
    ) -> None:
        self.evaluate, self.report, self.selects = evaluate, report, selects
        self.main, self.opsets = model.graph, model.opset_imports
        self.budget = _MOST_ADDED_BYTES
        self.failures: list[Diagnostic] = []

    def graph(self, graph: ir.Graph) -> None:
        for node in list(graph):
            if any(value.const_value is not None for value in node.outputs):
                self.known(graph, node)
        self.fold(graph, constant_nodes(graph, self.opsets, self.fits))
        for node in graph:
            for nested in graph_attributes(node):
                self.graph(nested)

    def known(self, graph: ir.Graph, node: ir.Node) -> None:
        """Replaces a node if shape inference found the elements of its results."""
        arrays = {value: array_of(value.const_value) for value in node.outputs if value.const_value is not None}
        if len(arrays) == len(node.outputs):
            self.replace(graph, node, arrays)

    def fits(self, node: ir.Node) -> bool:
        """Whether the pass selects the node, and its results are not much larger than its inputs."""
        if not self.selects(node):
            return False
        given = sum(_size(value) or 0 for value in node.inputs if value is not None)
        sizes = [_size(value) for value in _read(node)]
        growth = max(0, sum(size or 0 for size in sizes) - given)
        if growth <= self.budget and all(size is None or size <= _MOST_BYTES + _MOST_GROWTH * given for size in sizes):
            self.budget -= growth
            return True
        self.report.missed.append(Missed("fold", origin.of(node), "the result is much larger than the inputs"))
        return False

    def fold(self, graph: ir.Graph, region: list[ir.Node]) -> None:
        computed = []
        for node in region:
            array = constant_of(node.outputs[0]) if node.op_identifier() == ("", "Constant", "") else None
            if array is not None:
                self.replace(graph, node, {node.outputs[0]: array})
            elif node.op_type != "Constant":
                computed.append(node)
        if not computed or self.compute(graph, computed) is None:
            return
        for node in computed:
            if any(value is not None and constant_of(value) is None for value in node.inputs):
                continue  # a node before it failed
            found = self.compute(graph, [node])
            if found is not None and found.code == "CC0401" and graph is self.main:
                self.failures.append(replace(found, origin=origin.of(node)))
            elif found is not None:
                self.report.missed.append(Missed("fold", origin.of(node), found.message))

    def compute(self, graph: ir.Graph, nodes: Sequence[ir.Node]) -> Diagnostic | None:
        """Runs the nodes together and replaces them; returns the error if the run fails."""
        inside = set(nodes)
        wanted = [value for node in nodes for value in node.outputs if _is_read_outside(value, inside)]
        try:
            arrays = dict(zip(wanted, self.evaluate(nodes, wanted, self.opsets), strict=True))
        except CompileError as error:
            return error.diagnostics[0]
        for node in reversed(nodes):
            self.replace(graph, node, arrays)
        return None

    def replace(self, graph: ir.Graph, node: ir.Node, arrays: Mapping[ir.Value, np.ndarray]) -> None:
        """Replaces the node with initializers."""
        if node.op_type != "Constant":
            self.report.fired.append(Fired("fold", origin.of(node)))
        for old in node.outputs:
            name, old.name, old.const_value = old.name, None, None
            if old in arrays and (old.uses() or old.is_graph_output()):
                tensor = _tensor(arrays[old], old)
                shape = ir.Shape(arrays[old].shape)
                new = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=shape, const_value=tensor)
                graph.register_initializer(new)
                old.replace_all_uses_with(new, replace_graph_outputs=True)
        graph.remove(node, safe=True)


def _is_index(node: ir.Node) -> bool:
    sizes = [_size(value) for value in _read(node)]
    is_small = all(size is not None and size <= _INDEX_BYTES for size in sizes)
    if all(value.dtype in _INDEX_TYPES for value in node.outputs):
        return is_small
    return is_small and all(value is None or value.dtype in _INTEGERS for value in (*node.inputs, *node.outputs))


def _read(node: ir.Node) -> list[ir.Value]:
    """The results with readers."""
    return [value for value in node.outputs if value.uses() or value.is_graph_output()]


def _is_read_outside(value: ir.Value, nodes: set[ir.Node]) -> bool:
    return value.is_graph_output() or any(use.node not in nodes for use in value.uses())


def _tensor(array: np.ndarray, value: ir.Value) -> ir.TensorProtocol:
    if array.dtype == object:
        return ir.StringTensor([str(item).encode() for item in array.ravel()], shape=ir.Shape(array.shape))
    return ir.Tensor(array, dtype=value.dtype)


def _size(value: ir.Value) -> int | None:
    shape = static_shape(value)
    if shape is None or value.dtype is None:
        return None
    return prod(shape) * (16 if value.dtype == ir.DataType.STRING else int(np.ceil(value.dtype.itemsize)))
