"""Models made of a model to tell a fault from rounding."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir

FLOAT, DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE


def in_double_precision(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every float32 number a float64, but for what the standard wants in float32 (Resize's scales)."""
    rewritten = ir.from_proto(model)
    for value in rewritten.graph.initializers.values():
        assert value.const_value is not None
        if value.const_value.dtype == FLOAT and not _feeds_resize(value):
            value.const_value, value.type = _widened(value.const_value), ir.TensorType(DOUBLE)
    for node in rewritten.graph.all_nodes():
        for name, attribute in list(node.attributes.items()):
            if name == "to" and attribute.value == FLOAT:
                node.attributes[name] = ir.AttrInt64(name, int(DOUBLE))
            elif _is_float(attribute) and not _feeds_resize(node.outputs[0]):
                node.attributes[name] = ir.AttrTensor(name, _widened(attribute.value))
    values = [value for node in rewritten.graph.all_nodes() for value in node.outputs]
    for value in (*rewritten.graph.inputs, *values):
        if value.dtype == FLOAT:
            value.type = ir.TensorType(DOUBLE)
    return ir.to_proto(rewritten)


def _is_float(attribute: ir.Attr) -> bool:
    return attribute.type == ir.AttributeType.TENSOR and attribute.value.dtype == FLOAT


def _feeds_resize(value: ir.Value) -> bool:
    return any(use.node.op_type == "Resize" for use in value.uses())


def _widened(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    return ir.tensor(tensor.numpy().astype(np.float64), name=tensor.name)


def quantised(model: onnx.ModelProto) -> list[str]:
    """The names of the quantised values."""
    return [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]


def showing_quantised(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its quantised values as outputs too."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in quantised(model))
    return shown


def cut_at_quantised(model: onnx.ModelProto, values: dict[str, np.ndarray]) -> onnx.ModelProto:
    """That model cut where values are quantised: what uses `name` takes an input `name given`, of the value's shape."""
    cut = showing_quantised(model)
    for node in cut.graph.node:
        node.input[:] = [f"{name} given" if name in values else name for name in node.input]
    for name, array in values.items():
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        cut.graph.input.append(onnx.helper.make_tensor_value_info(f"{name} given", kind, array.shape))
    return cut
