"""LSTMs whose hidden states are projected. The exporter writes ONNX's operator, which has no projection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnxscript import graph, script
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops import core
from onnxscript.function_libs.torch_lib.tensor_typing import TFloat

from compiler.frontend.translations.parts import Untranslatable, axes

__all__ = ["TRANSLATIONS"]


@script(default_opset=op)  # type: ignore[untyped-decorator]
def projected_states(
    hidden: TFloat, cell: TFloat, gates: TFloat, recurrent: TFloat, projection: TFloat
) -> tuple[TFloat, TFloat, TFloat]:
    """The hidden state after each step, the last one, and the last cell.

    `hidden` is `[N, P]`, `cell` `[N, H]`, `recurrent` `[P, 4 · H]`, and `projection` `[H, P]`. `gates` `[T, N, 4 · H]`
    has what each step adds from the inputs, in the order of PyTorch: input, forget, cell, output.
    """

    @graph()
    def step(before, kept, given):  # type: ignore[no-untyped-def]  # onnxscript reads annotations as types of ONNX
        opened, forget, new, shown = op.Split(op.Add(given, op.MatMul(before, recurrent)), axis=-1, num_outputs=4)
        following = op.Add(op.Mul(op.Sigmoid(forget), kept), op.Mul(op.Sigmoid(opened), op.Tanh(new)))
        after = op.MatMul(op.Mul(op.Sigmoid(shown), op.Tanh(following)), projection)
        return after, following, op.Identity(after)

    last, last_cell, states = op.Scan(hidden, cell, gates, body=step, num_scan_inputs=1)
    return states, last, last_cell


def lstm(
    input: Any,
    hx: Sequence[Any],
    params: Sequence[Any],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Any, Any, Any]:
    """The outputs `[T, N, …]` of an LSTM, and its last hidden states and cells.

    Source: https://docs.pytorch.org/docs/stable/generated/torch.nn.LSTM.html and H. Sak et al., Long Short-Term Memory
    Based Recurrent Neural Network Architectures for Large Vocabulary Speech Recognition, 2014.
    """
    if hx[0].shape[-1] == hx[1].shape[-1]:  # a projection makes hidden states smaller than cells
        options = has_biases, num_layers, dropout, train, bidirectional, batch_first
        usual: tuple[Any, Any, Any] = core.aten_lstm(input, hx, params, *options)
        return usual
    if train and dropout:
        raise Untranslatable("in training mode, an LSTM with dropout draws random numbers")
    rows = op.Transpose(input, perm=[1, 0, 2]) if batch_first else input
    directions, each = 1 + bidirectional, 3 + 2 * has_biases
    hidden, cells = [], []
    for layer in range(num_layers):
        found = []
        for direction in range(directions):
            at = layer * directions + direction
            given = _reversed(rows) if direction else rows
            before, kept = (op.Gather(state, axes([at]), axis=0) for state in hx)
            states, last, cell = _direction(given, before, kept, params[at * each : (at + 1) * each])
            found.append(_reversed(states) if direction else states)
            hidden.append(last)
            cells.append(cell)
        rows = op.Concat(*found, axis=-1) if bidirectional else found[0]
    result = op.Transpose(rows, perm=[1, 0, 2]) if batch_first else rows
    return result, *(op.Concat(*(op.Unsqueeze(one, axes([0])) for one in part), axis=0) for part in (hidden, cells))


def _direction(rows: Any, hidden: Any, cell: Any, weights: Sequence[Any]) -> tuple[Any, Any, Any]:
    """One direction of a layer. The states are `[1, N, …]`."""
    (of_input, recurrent, *biases), projection = weights[:-1], weights[-1]
    gates = op.MatMul(rows, op.Transpose(of_input, perm=[1, 0]))
    for bias in biases:
        gates = op.Add(gates, bias)
    first = [op.Squeeze(state, axes([0])) for state in (hidden, cell)]
    turned = [op.Transpose(each, perm=[1, 0]) for each in (recurrent, projection)]
    states: tuple[Any, Any, Any] = projected_states(*first, gates, *turned)
    return states


def _reversed(rows: Any) -> Any:
    return op.Slice(rows, axes([-1]), axes([-(1 << 62)]), axes([0]), axes([-1]))


TRANSLATIONS = {"aten::lstm.input": lstm}
"""The operator that `torch.nn.LSTM` calls."""
