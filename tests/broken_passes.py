"""Passes and a lowering that are wrong on purpose, for tests of the search for them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import onnx
import onnx.numpy_helper
import onnx.parser
import onnx_ir as ir
import pytest

from compiler import pipeline
from compiler.bisect import crash
from compiler.ir import origin
from compiler.ir.graph import constant_of, nodes_of
from compiler.lower.node import LOWERINGS, Node
from compiler.plan import PlanBuilder, Value, ops
from compiler.processes.child import Channel
from compiler.rewrite.report import Fired, PassReport

MODEL = """
<ir_version: 9, opset_import: ["": 20]>
m (float[n, 4] x) => (float[n, 4] y)
<float[4] scale = {1, 2, 3, 4}, float[4] shift = {3, 1, 1, 1}, int64[1] four = {4}>
{
    [floor] whole = Floor (x)
    [scale] scaled = Mul (whole, scale)
    [sort] sorted, order = TopK <axis = 1> (scaled, four)
    [shift] shifted = Add (sorted, shift)
    [soft] soft = Softmax (shifted)
    [neg] y = Neg (soft)
}
"""


def model() -> onnx.ModelProto:
    """A model with a step that the broken pass changes, and others before and after it."""
    return onnx.parser.parse_model(MODEL)


def _change_constants(graph: ir.Model, report: PassReport) -> None:
    """Add to the first element of the constants of Add."""
    for node in nodes_of(graph):
        for value in node.inputs if node.op_type == "Add" else ():
            if value is not None and value.const_value is not None and constant_of(value) is not None:
                array = value.const_value.numpy().copy()
                array[0] += 1
                value.const_value = ir.tensor(array)
                report.fired.append(Fired("ChangeConstants", origin.of(node)))


def _enlarge(graph: ir.Model, report: PassReport) -> None:
    """Compute Neg from a part of eight copies of its input."""
    for node in list(nodes_of(graph)):
        value = node.inputs[0] if node.op_type == "Neg" else None
        if value is not None and value.producer() is not None and value.producer().op_type != "Split":  # type: ignore[union-attr]
            copies = ir.node("Concat", [value] * 8, {"axis": 1})
            parts = ir.node("Split", copies.outputs, {"axis": 1, "num_outputs": 8}, num_outputs=8)
            for made, size in ((copies.outputs[0], 32), *((part, 4) for part in parts.outputs)):
                assert value.shape is not None
                made.type, made.shape = value.type, ir.Shape([value.shape[0], size])
            origin.inherit([copies, parts], [node])
            graph.graph.insert_before(node, [copies, parts])
            node.replace_input_with(0, parts.outputs[0])
            report.fired.append(Fired("Enlarge", origin.of(node)))


def _rewrite_nothing(_model: ir.Model, _report: PassReport) -> None:
    """A pass without rewrites."""


def _fail(_model: ir.Model, _report: PassReport) -> None:
    raise AssertionError("the pass is broken")


def _end(_model: ir.Model, _report: PassReport) -> None:
    os._exit(3)


def _fail_to_lower(_node: Node, _build: PlanBuilder) -> Value:
    raise AssertionError("the lowering is broken")


def _break_pass(name: str, apply: Callable[[ir.Model, PassReport], None]) -> None:
    """Let a pass do something else. The pipeline must not make it with a function."""
    setattr(pipeline, name, replace(getattr(pipeline, name), apply=apply))


def let_pass_change_constants(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a pass make the results wrong, for a test."""
    monkeypatch.setattr(pipeline, name, replace(getattr(pipeline, name), apply=_change_constants))


def let_pass_enlarge(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a pass add steps and memory, for a test. The results stay right."""
    monkeypatch.setattr(pipeline, name, replace(getattr(pipeline, name), apply=_enlarge))


def let_pass_rest(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let a pass rewrite nothing, for a test. The results stay right."""
    monkeypatch.setattr(pipeline, name, replace(getattr(pipeline, name), apply=_rewrite_nothing))


def let_add_subtract(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the lowering of Add compute a difference, for a test."""

    def subtract(node: Node, build: PlanBuilder) -> Value:
        return build(ops.Binary(function="Sub"), node.input(0), node.input(1))

    monkeypatch.setitem(LOWERINGS, ("", "Add"), replace(LOWERINGS["", "Add"], function=subtract))


def attempt_with_failing_pass(asked: crash.Attempt, channel: Channel) -> Any:
    """An attempt in a process where a pass raises an exception."""
    _break_pass("merge_reshapes", _fail)
    return crash.attempt(asked, channel)


def attempt_with_deadly_pass(asked: crash.Attempt, channel: Channel) -> Any:
    """An attempt in a process that a pass ends."""
    _break_pass("drop_noops", _end)
    return crash.attempt(asked, channel)


def attempt_without_lowering(asked: crash.Attempt, channel: Channel) -> Any:
    """An attempt in a process where a lowering raises an exception."""
    LOWERINGS["", "TopK"] = replace(LOWERINGS["", "TopK"], function=_fail_to_lower)
    return crash.attempt(asked, channel)
