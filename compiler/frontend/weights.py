"""Weights that a session may replace: no pass and no lowering may look at their elements.

While the compiler works on the model, they are inputs of the graph without a value. The lowering makes them constants
of the plan. The plan therefore computes the model with any elements of these weights.
"""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import array_of, nodes_of

__all__ = ["Weights", "hold_weights"]

Weights = dict[ir.Value, np.ndarray]
"""Weights, which are inputs of the graph, and their elements."""

_FLOATS = frozenset([ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE])
_NUMBERS = {"Resize": (1, 2), "Upsample": (1,), "DequantizeLinear": (1,), "QuantizeLinear": (1,)}
"""Operators of the standard → the inputs with scales and sizes, which decide what the operator computes."""


def hold_weights(model: ir.Model) -> Weights:
    """Makes the weights of a model inputs of its graph, and returns them with their elements.

    Weights are the float initializers of the main graph with more than one element. Scales of resized images and of
    quantized tensors are no weights.
    """
    numbers = set(_numbers(model))
    held: Weights = {}
    for name, value in list(model.graph.initializers.items()):
        tensor = value.const_value
        if tensor is None or tensor.dtype not in _FLOATS or tensor.size < 2 or value in numbers:
            continue
        held[value] = array_of(tensor)
        value.type, value.shape = ir.TensorType(tensor.dtype), ir.Shape(tuple(tensor.shape.numpy()))
        value.const_value = None
        del model.graph.initializers[name]
        if value not in model.graph.inputs:
            model.graph.inputs.append(value)
    return held


def _numbers(model: ir.Model) -> Iterator[ir.Value | None]:
    """The inputs of nodes that hold scales and sizes, also those of QLinear operators."""
    for node in nodes_of(model):
        is_quantized = node.op_type.startswith("QLinear")
        for index in range(len(node.inputs)) if is_quantized else _NUMBERS.get(node.op_type, ()):
            if index < len(node.inputs):
                yield node.inputs[index]
