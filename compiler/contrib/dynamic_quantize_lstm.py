"""DynamicQuantizeLSTM: an LSTM with 8-bit weights, which quantizes its inputs and its state in each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.activations import Activation, read_activations
from compiler.contrib.expansion.body import FLOAT, Body, Size
from compiler.contrib.expansion.node import Node, expands
from compiler.ir.views.quantize import CODES

__all__: list[str] = []

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_ACTIVATIONS = ("Sigmoid", "Tanh", "Tanh")
_RANKS = {0: ("X", 3), 1: ("W", 3), 2: ("R", 3), 3: ("B", 2), 5: ("initial_h", 3), 6: ("initial_c", 3)}
"""The index of an input → its name and rank."""


@dataclass(frozen=True)
class _Layer:
    """The sizes, lengths and options of both directions."""

    batch: Size
    hidden: int
    lengths: ir.Value | None
    """The number of steps of each row, `int64 [B]`; `None`: every row has all steps."""
    clip: float | None
    couples: bool
    """Whether the forget gate is 1 minus the input gate."""


@expands("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: Node, new: Body) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The LSTM of X `[S, B, I]`, with weights `[D, I, 4 · H]` and `[D, H, 4 · H]`, whose gates are i, o, f and c.

    X has one scale for all of its steps, and the state one in each step. Outputs: all states `[S, D, B, H]`, the
    last state and the last cell `[D, B, H]`.
    """
    reversed_, activations = _checked(node)
    layer = _layer(node, new)
    steps = new.size(node.input(0), 0)
    x, longest = node.input(0), None
    if layer.lengths is not None:
        longest = new.op("Max", new.reshape(new.op("ReduceMax", layer.lengths), 1), new.numbers(1))
        x = new.op("Gather", x, new.positions(longest), axis=0)
    x, scale, zero = new.op("DynamicQuantizeLinear", x, outputs=3)
    results = []
    for at, is_reversed in enumerate(reversed_):
        gates = _product(node, new, (x, scale, zero), 1, 8, at)
        bias = _of_direction(node, new, 3, at)
        if bias is not None:
            both = new.split(bias, 0, 4 * layer.hidden, 4 * layer.hidden)
            gates = new.op("Add", gates, new.op("Add", *both))
        results.append(_scanned(node, new, gates, layer, activations[3 * at : 3 * at + 3], at, is_reversed))
    last, cell, rows = (new.joined(*(each[index] for each in results), axis=(0, 0, 1)[index]) for index in range(3))
    if longest is not None:
        more = new.sizes(0, 0, 0, 0, new.op("Sub", new.sizes(steps), longest), 0, 0, 0)
        rows = new.op("Pad", rows, more)
    return rows, last, cell


def _layer(node: Node, new: Body) -> _Layer:
    lengths, clip = node.optional(4), node.float("clip", None)
    if clip is not None and not clip > 0:
        node.refuse("CC0202", f"DynamicQuantizeLSTM's attribute clip is {clip}, which is not positive")
    return _Layer(
        new.size(node.input(0), 1),
        node.positive("hidden_size"),
        None if lengths is None else new.op("Cast", lengths, to=ir.DataType.INT64),
        clip,
        node.flag("input_forget", False),
    )


def _checked(node: Node) -> tuple[tuple[bool, ...], list[Activation]]:
    """Whether each direction reads X from its end, and three activations for each direction."""
    for index, (name, rank) in _RANKS.items():
        if index < 3:
            node.rank(index, name, rank)
        elif node.optional(index) is not None:
            node.check_rank(index, name, rank)
    node.dtype(1, "W", *CODES)
    node.dtype(2, "R", *CODES)
    direction = node.string("direction", "forward")
    if direction not in _DIRECTIONS:
        node.refuse("CC0202", f"DynamicQuantizeLSTM has no direction {direction!r}; it is {', '.join(_DIRECTIONS)}")
    count = 3 * len(_DIRECTIONS[direction])
    names = node.strings("activations", [])
    if len(names) not in (0, count):
        node.refuse("CC0202", f"DynamicQuantizeLSTM needs {count} activations for {direction}, found {len(names)}")
    return _DIRECTIONS[direction], read_activations(node, names or [*_ACTIVATIONS] * (count // 3))


def _of_direction(node: Node, new: Body, index: int, at: int) -> ir.Value | None:
    """The part of an input that belongs to a direction."""
    value = node.optional(index)
    return None if value is None else new.op("Gather", value, new.scalar(at, ir.DataType.INT64), axis=0)


def _product(
    node: Node, new: Body, operand: tuple[ir.Value, ir.Value, ir.Value], weights: int, scale: int, at: int
) -> ir.Value:
    """The product of a quantized operand with the weights of input `weights`, whose scale is input `scale`."""
    codes, step, zero = operand
    matrix, scales, zeros = (_of_direction(node, new, index, at) for index in (weights, scale, scale + 1))
    sums = new.op("Cast", new.op("MatMulInteger", codes, matrix, zero, zeros), to=FLOAT)
    return new.op("Mul", sums, new.op("Mul", step, scales))


def _scanned(
    node: Node, new: Body, gates: ir.Value, layer: _Layer, functions: list[Activation], at: int, is_reversed: bool
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The last state and cell of a direction, `[1, B, H]`, and its states `[S, 1, B, H]`."""
    states = []
    for index in (5, 6):
        given = _of_direction(node, new, index, at)
        if given is None:
            given = new.op("Expand", new.scalar(0, FLOAT), new.sizes(layer.batch, layer.hidden))
        states.append(given)
    outer = [_of_direction(node, new, index, at) for index in (2, 10, 11)]
    body = _step(outer, _of_direction(node, new, 7, at), layer, functions)
    inputs, lengths = [gates], layer.lengths
    if lengths is not None:
        mirrored = _mirrored(new, gates, lengths) if is_reversed else gates
        inputs = [mirrored, _going(new, gates, lengths)]
    direction = int(is_reversed and lengths is None)
    options: dict[str, Any] = {
        "num_scan_inputs": len(inputs),
        "scan_input_directions": [direction] * len(inputs),
        "scan_output_directions": [direction],
    }
    last, cell, rows = new.op("Scan", *states, *inputs, body=body, outputs=3, **options)
    if lengths is not None:
        rows = _mirrored(new, rows, lengths) if is_reversed else rows
        is_empty = new.op("Equal", new.unsqueeze(lengths, 1), new.numbers(0))
        last, cell = (new.op("Where", is_empty, new.scalar(0, FLOAT), each) for each in (last, cell))
    return new.unsqueeze(last, 0), new.unsqueeze(cell, 0), new.unsqueeze(rows, 1)


def _mirrored(new: Body, values: ir.Value, lengths: ir.Value) -> ir.Value:
    """The steps of each row in the opposite order, `[S, B, n]`."""
    return new.op("ReverseSequence", values, lengths, time_axis=0, batch_axis=1)


def _going(new: Body, gates: ir.Value, lengths: ir.Value) -> ir.Value:
    """Whether a row has a step, `bool [S, B, 1]`."""
    steps = new.unsqueeze(new.positions(new.op("Shape", gates, start=0, end=1)), 1, 2)
    return new.op("Less", steps, new.unsqueeze(lengths, 1))


def _step(
    outer: list[ir.Value | None], peepholes: ir.Value | None, layer: _Layer, functions: list[Activation]
) -> ir.Graph:
    """The body of the scan: the state, the cell and the products of X → the next state and cell, and the state."""
    names = ["state", "cell", "gates", *([] if layer.lengths is None else ["going"])]
    types = [FLOAT, FLOAT, FLOAT, ir.DataType.BOOL]
    given = [ir.Value(name=name, type=ir.TensorType(kind)) for name, kind in zip(names, types, strict=False)]
    state, cell, gates = given[:3]
    new = Body(None)
    weights, scales, zeros = outer
    codes, scale, zero = new.op("DynamicQuantizeLinear", state, outputs=3)
    sums = new.op("Cast", new.op("MatMulInteger", codes, weights, zero, zeros), to=FLOAT)
    total = new.op("Add", gates, new.op("Mul", sums, new.op("Mul", scale, scales)))
    i, o, f, c = new.split(total, 1, *[layer.hidden] * 4)
    pi, po, pf = [None] * 3 if peepholes is None else new.split(peepholes, 0, *[layer.hidden] * 3)

    def gate(value: ir.Value, function: Activation, factor: ir.Value | None, held: ir.Value) -> ir.Value:
        value = value if factor is None else new.op("Add", value, new.op("Mul", factor, held))
        if layer.clip is not None:
            value = new.op("Clip", value, new.scalar(-layer.clip, FLOAT), new.scalar(layer.clip, FLOAT))
        return function.apply(new, value)

    taken = gate(i, functions[0], pi, cell)
    kept = new.op("Sub", new.scalar(1, FLOAT), taken) if layer.couples else gate(f, functions[0], pf, cell)
    added = new.op("Mul", taken, gate(c, functions[1], None, cell))
    later = new.op("Add", new.op("Mul", kept, cell), added)
    result = new.op("Mul", gate(o, functions[0], po, later), functions[2].apply(new, later))
    if layer.lengths is None:
        return new.graph([result, later, new.op("Identity", result)], given, "step")
    later = new.op("Where", given[3], later, cell)
    held, shown = (new.op("Where", given[3], result, other) for other in (state, new.scalar(0, FLOAT)))
    return new.graph([held, later, shown], given, "step")
