"""Replaces calls of the model's own functions with the bodies of the functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

import onnx_ir as ir
from onnx_ir.passes.common import InlinePass

from compiler import contrib
from compiler.custom import registered
from compiler.errors import CompileError, Diagnostic
from compiler.ir import origin
from compiler.ir.graph import nodes_of
from compiler.lower.node import LOWERINGS
from compiler.rewrite.report import Fired, Pass, PassReport

__all__ = ["inline", "inline_functions", "inline_in_one_opset", "is_supported", "reached"]

_Functions: TypeAlias = Mapping[ir.OperatorIdentifier, ir.Function]

_MOST_NODES = 10_000_000
"""The limit of nodes after inlining. Functions that call each other twice double the nodes at each level."""


def _inline_functions(model: ir.Model, report: PassReport) -> None:
    """Replaces every call of a model-local function with the function's body.

    If one of onnxruntime's operators has a lowering or an expansion, its body and the functions that it calls stay in
    the model, for nodes that the lowering or the expansion refuses.
    """
    report.refused.extend(_needless(node, model) for node in _all_nodes(model) if _is_needless(node, model))
    if not model.functions:
        return
    functions = dict(model.functions)
    _in_order(functions)
    others = {key: each for key, each in functions.items() if not is_supported(each)}
    _set_functions(model, reached(others, [model.graph]))
    report.fired.extend(Fired("inline", origin.of(node)) for node in _calls(model))
    inline(model)
    _set_functions(model, reached(functions, [model.graph]))


def _is_needless(node: ir.Node, model: ir.Model) -> bool:
    """Whether the program has registered a function for an operator that the compiler or the model defines."""
    if registered(node.domain, node.op_type) is None:
        return False
    is_known = (node.domain, node.op_type) in LOWERINGS or contrib.is_known(node)
    return is_known or node.op_identifier() in model.functions


def _needless(node: ir.Node, model: ir.Model) -> Diagnostic:
    where = "the model" if node.op_identifier() in model.functions else "the compiler"
    message = f"{where} defines {node.domain}::{node.op_type} already, and compiler.custom_op registers it too"
    return Diagnostic("CC0209", message, origin.of(node), "leave out the registration")


def is_supported(function: ir.Function) -> bool:
    """Whether an operator of onnxruntime's has a lowering or an expansion."""
    is_lowered = function.domain == contrib.MICROSOFT and (function.domain, function.name) in LOWERINGS
    return is_lowered or contrib.is_operator(function.domain, function.name)


def _set_functions(model: ir.Model, functions: _Functions) -> None:
    model.functions.clear()
    model.functions.update(functions)


def reached(functions: _Functions, graphs: list[ir.Graph]) -> dict[ir.OperatorIdentifier, ir.Function]:
    """The functions that the graphs call, directly or through other functions."""
    found: dict[ir.OperatorIdentifier, ir.Function] = {}
    waiting = list(graphs)
    while waiting:
        for key in _identifiers(waiting.pop()):
            if key in functions and key not in found:
                found[key] = functions[key]
                waiting.append(functions[key].graph)
    return found


def inline(model: ir.Model) -> None:
    """Inlines all functions. If a function's opset differs from the model's, its nodes keep that opset.

    Raises:
        CompileError: functions call each other recursively, a call has wrong arguments, or the nodes are too many.
    """
    if (count := _inlined_nodes(model)) > _MOST_NODES:
        message = f"the calls of the model's functions expand to {count:,} nodes, more than {_MOST_NODES:,}"
        raise CompileError([Diagnostic("CC0106", message)])
    for function in model.functions.values():
        _keep_opset(function, model.opset_imports)
        _copy_returned_inputs(function)
    try:
        for node in _calls(model):
            node.resize_outputs(len(model.functions[node.op_identifier()].outputs))
        InlinePass()(model)
    except (RuntimeError, ValueError) as error:
        raise CompileError([Diagnostic("CC0106", f"a model-local function cannot be inlined: {error}")]) from None


def inline_in_one_opset(model: ir.Model) -> None:
    """Inlines all functions, for a file. All nodes of a file have one opset.

    Raises:
        CompileError: as `inline`; or a function's opset differs from the model's.
    """
    inline(model)
    model.functions.clear()
    for node in nodes_of(model):
        if node.version not in (None, model.opset_imports.get(node.domain)):
            message = f"a function has opset {node.version}, but its model has another: convert both to one opset"
            raise CompileError([Diagnostic("CC0106", message, origin.of(node))])


def _inlined_nodes(model: ir.Model) -> int:
    """The number of nodes after inlining."""
    counts: dict[ir.OperatorIdentifier, int] = {}
    for key in _in_order(model.functions):
        counts[key] = sum(counts.get(each, 1) for each in _identifiers(model.functions[key].graph))
    return sum(counts.get(each, 1) for each in _identifiers(model.graph))


def _in_order(functions: _Functions) -> list[ir.OperatorIdentifier]:
    """The functions, each after those that it calls.

    Raises:
        CompileError: functions call each other recursively.
    """
    called = {key: functions.keys() & {*_identifiers(function.graph)} for key, function in functions.items()}
    try:
        return list(TopologicalSorter(called).static_order())
    except CycleError as error:
        names = " → ".join(f"{domain}.{name}" for domain, name, _ in error.args[1])
        raise CompileError([Diagnostic("CC0107", f"functions call each other: {names}")]) from None


def _identifiers(graph: ir.Graph) -> list[ir.OperatorIdentifier]:
    """The operators of all nodes, including those of nested graphs."""
    return [node.op_identifier() for node in ir.traversal.RecursiveGraphIterator(graph)]


def _calls(model: ir.Model) -> list[ir.Node]:
    """The calls of functions, including calls in functions."""
    return [node for node in _all_nodes(model) if node.op_identifier() in model.functions]


def _all_nodes(model: ir.Model) -> Iterator[ir.Node]:
    """The nodes of a model and of its functions."""
    yield from nodes_of(model)
    for function in model.functions.values():
        yield from ir.traversal.RecursiveGraphIterator(function.graph)


def _keep_opset(function: ir.Function, model_opsets: dict[str, int]) -> None:
    opsets = function.opset_imports
    for node in ir.traversal.RecursiveGraphIterator(function.graph):
        own = opsets.get(node.domain)
        if node.version is None and own is not None and own != model_opsets.setdefault(node.domain, own):
            node.version = own
    opsets.update({domain: model_opsets.get(domain, version) for domain, version in opsets.items()})


def _copy_returned_inputs(function: ir.Function) -> None:
    """Adds Identity nodes to a body that returns inputs, because results of a call are new values."""
    for index, value in enumerate(function.outputs):
        if value in function.inputs:
            identity = ir.Node("", "Identity", [value], num_outputs=1)
            identity.outputs[0].name = f"{value.name}_passed_on"
            function.append(identity)
            function.outputs[index] = identity.outputs[0]


inline_functions = Pass(
    "inline_functions", _inline_functions, result="calls inlined", ensures=frozenset({"inlined"}), needed=True
)
