"""Variants of a model, which distinguish a fault from rounding."""

from __future__ import annotations

import numpy as np
import onnx


def quantized(model: onnx.ModelProto) -> list[str]:
    """The names of the quantized values."""
    return [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]


def showing_quantized(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its quantized values as outputs too."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in quantized(model))
    return shown


def cut_at_quantized(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> onnx.ModelProto:
    """The model cut at quantized values: readers of `name` read an input `name given` with the value's shape."""
    cut = showing_quantized(model)
    for node in cut.graph.node:
        node.input[:] = [f"{name} given" if name in values else name for name in node.input]
    for name, array in values.items():
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        cut.graph.input.append(onnx.helper.make_tensor_value_info(f"{name} given", kind, array.shape))
    return cut
