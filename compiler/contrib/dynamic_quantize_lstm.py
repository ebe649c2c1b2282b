"""DynamicQuantizeLSTM: an LSTM with 8-bit weights, which quantizes its inputs and its state in each run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from compiler.contrib.expansion.body import FLOAT, Body, Size
from compiler.contrib.expansion.node import Node, expands
from compiler.ir.views.quantize import CODES

__all__: list[str] = []

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
_ACTIVATIONS = ("Sigmoid", "Tanh", "Tanh")
_RANKS = {0: ("X", 3), 1: ("W", 3), 2: ("R", 3), 3: ("B", 2), 5: ("initial_h", 3), 6: ("initial_c", 3)}
"""The index of an input → its name and rank."""


@dataclass(frozen=True)
class _Sizes:
    batch: Size
    hidden: int
    directions: int


@expands("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: Node, new: Body) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The LSTM of X `[S, B, I]`, with weights `[D, I, 4 · H]` and `[D, H, 4 · H]`, whose gates are i, o, f and c.

    X has one scale for all of its elements, and the state one in each step. Outputs: all states `[S, D, B, H]`, the
    last state and the last cell `[D, B, H]`.
    """
    reversed_ = _checked(node)
    hidden = node.positive("hidden_size")
    sizes = _Sizes(new.size(node.input(0), 1), hidden, len(reversed_))
    x, scale, zero = new.op("DynamicQuantizeLinear", node.input(0), outputs=3)
    results = []
    for at, is_reversed in enumerate(reversed_):
        gates = _product(node, new, (x, scale, zero), 1, 8, at)
        bias = _of_direction(node, new, 3, at)
        if bias is not None:
            both = new.split(bias, 0, 4 * hidden, 4 * hidden)
            gates = new.op("Add", gates, new.op("Add", *both))
        results.append(_scanned(node, new, gates, sizes, at, is_reversed))
    joined = [new.joined(*(each[index] for each in results), axis=axis) for index, axis in ((2, 1), (0, 0), (1, 0))]
    return joined[0], joined[1], joined[2]


def _checked(node: Node) -> tuple[bool, ...]:
    """Whether each direction reads X from its end. Refuses what differs from a plain LSTM."""
    for index, (name, rank) in _RANKS.items():
        if index < 3 or node.optional(index) is not None:
            node.rank(index, name, rank)
    node.dtype(1, "W", *CODES)
    node.dtype(2, "R", *CODES)
    node.refuse_input(4, "sequence_lens")
    node.choice("input_forget", 0)
    direction = node.string("direction", "forward")
    if direction not in _DIRECTIONS:
        node.refuse("CC0202", f"DynamicQuantizeLSTM has no direction {direction!r}; it is {', '.join(_DIRECTIONS)}")
    count = len(_DIRECTIONS[direction])
    activations = node.strings("activations", list(_ACTIVATIONS) * count)
    if [*activations] != list(_ACTIVATIONS) * count:
        node.refuse(
            "CC0202", f"DynamicQuantizeLSTM's attribute activations is {activations}: only the default is supported"
        )
    for name in ("activation_alpha", "activation_beta"):
        if node.floats(name, []):
            node.refuse("CC0202", f"DynamicQuantizeLSTM's attribute {name} is not supported")
    if (clip := node.float("clip", 0.0)) != 0:
        node.refuse("CC0202", f"DynamicQuantizeLSTM's attribute clip is {clip}; only no clip is supported")
    return _DIRECTIONS[direction]


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
    node: Node, new: Body, gates: ir.Value, sizes: _Sizes, at: int, is_reversed: bool
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The last state and cell of a direction, `[1, B, H]`, and its states `[S, 1, B, H]`."""
    states = []
    for index in (5, 6):
        given = _of_direction(node, new, index, at)
        if given is None:
            given = new.op("Expand", new.scalar(0, FLOAT), new.sizes(sizes.batch, sizes.hidden))
        states.append(given)
    outer = [_of_direction(node, new, index, at) for index in (2, 10, 11)]
    peepholes = _of_direction(node, new, 7, at)
    body = _step(outer, peepholes, sizes.hidden)
    options: dict[str, Any] = {
        "num_scan_inputs": 1,
        "scan_input_directions": [int(is_reversed)],
        "scan_output_directions": [int(is_reversed)],
    }
    last, cell, rows = new.op("Scan", *states, gates, body=body, outputs=3, **options)
    return new.unsqueeze(last, 0), new.unsqueeze(cell, 0), new.unsqueeze(rows, 1)


def _step(outer: list[ir.Value | None], peepholes: ir.Value | None, hidden: int) -> ir.Graph:
    """The body of the scan: the state, the cell and the products of X → the next state and cell, and the state."""
    given = [ir.Value(name=name, type=ir.TensorType(FLOAT)) for name in ("state", "cell", "gates")]
    state, cell, gates = given
    new = Body(None)
    weights, scales, zeros = outer
    codes, scale, zero = new.op("DynamicQuantizeLinear", state, outputs=3)
    sums = new.op("Cast", new.op("MatMulInteger", codes, weights, zero, zeros), to=FLOAT)
    total = new.op("Add", gates, new.op("Mul", sums, new.op("Mul", scale, scales)))
    i, o, f, c = new.split(total, 1, *[hidden] * 4)
    pi, po, pf = [None] * 3 if peepholes is None else new.split(peepholes, 0, *[hidden] * 3)

    def gate(value: ir.Value, factor: ir.Value | None, held: ir.Value) -> ir.Value:
        return new.op("Sigmoid", value if factor is None else new.op("Add", value, new.op("Mul", factor, held)))

    kept, added = new.op("Mul", gate(f, pf, cell), cell), new.op("Mul", gate(i, pi, cell), new.op("Tanh", c))
    later = new.op("Add", kept, added)
    result = new.op("Mul", gate(o, po, later), new.op("Tanh", later))
    return new.graph([result, later, new.op("Identity", result)], given, "step")
