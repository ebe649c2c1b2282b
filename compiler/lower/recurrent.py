"""LSTM, GRU and RNN."""

from __future__ import annotations

from typing import Any

from compiler.contrib.expansion.activations import read_activations
from compiler.lower.node import Node, lowers, remark
from compiler.plan import PlanBuilder, Value, ops

_REVERSED = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


@lowers("LSTM", newest=22)
def lstm(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`LSTM`."""
    op = ops.Lstm(
        hidden=_hidden(node),
        directions=_directions(node, ["Sigmoid", "Tanh", "Tanh"]),
        clip=node.float("clip", None),
        input_forget=node.flag("input_forget", False),
        batch_first=_batch_first(node),
    )
    return _step(node, build, op)


remark(
    "LSTM",
    "Without `activation_alpha`, Affine, ScaledTanh and ThresholdedRelu have the factor 1, as in the standard; in "
    "onnxruntime, their parameters are 0. The same is true of GRU, RNN, and DynamicQuantizeLSTM of com.microsoft.",
)


@lowers("GRU", newest=22)
def gru(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`GRU`."""
    op = ops.Gru(
        hidden=_hidden(node),
        directions=_directions(node, ["Sigmoid", "Tanh"]),
        clip=node.float("clip", None),
        linear_before_reset=node.flag("linear_before_reset", False),
        batch_first=_batch_first(node),
    )
    return _step(node, build, op)


@lowers("RNN", newest=22)
def rnn(node: Node, build: PlanBuilder) -> tuple[Value, ...]:
    """`RNN`."""
    op = ops.Rnn(
        hidden=_hidden(node),
        directions=_directions(node, ["Tanh"]),
        clip=node.float("clip", None),
        batch_first=_batch_first(node),
    )
    return _step(node, build, op)


def _step(node: Node, build: PlanBuilder, op: ops.Lstm | ops.Gru | ops.Rnn) -> tuple[Value, ...]:
    """The step of a node; ignores `output_sequence` of version 1: the list of outputs states whether Y is used."""
    node.flag("output_sequence", False)
    return build(op, *node.inputs, outputs=node.outputs)


def _hidden(node: Node) -> int:
    shape = node.input(2).shape
    known = shape[-1] if shape else None
    hidden = node.int("hidden_size", known if isinstance(known, int) else None)
    if hidden is None or hidden < 1:
        node.refuse("CC0202", f"{node.op_type} needs a positive attribute hidden_size, found {hidden}")
    return hidden


def _batch_first(node: Node) -> bool:
    layout = node.int("layout", 0)
    if layout not in (0, 1):
        node.refuse("CC0202", f"{node.op_type} has layout 0 or 1, not {layout}")
    return layout == 1


def _directions(node: Node, defaults: list[str]) -> list[ops.Direction]:
    direction = node.string("direction", "forward")
    if direction not in _REVERSED:
        node.refuse("CC0202", f"{node.op_type} has no direction {direction!r}", help=f"one of {', '.join(_REVERSED)}")
    is_reversed, count = _REVERSED[direction], len(defaults)
    names = node.strings("activations", None) or defaults * len(is_reversed)
    if node.op_type == "RNN" and names == ["Tanh", "Tanh"]:
        names = names[: len(is_reversed)]  # nodes of one direction may list the standard's defaults of both
    if len(names) != count * len(is_reversed):
        expected = count * len(is_reversed)
        node.refuse("CC0202", f"{node.op_type} needs {expected} activations for {direction}, found {len(names)}")
    functions = _activations(node, names)
    return [
        ops.Direction(reversed=each, activations=functions[i * count : (i + 1) * count])
        for i, each in enumerate(is_reversed)
    ]


def _activations(node: Node, names: list[str]) -> list[ops.AnyActivation]:
    """The activations with these names."""
    functions: list[ops.AnyActivation] = []
    for name, values in read_activations(node, names):
        function: Any = getattr(ops.Activation, name)(*values) if values else name
        functions.append(function)
    return functions
