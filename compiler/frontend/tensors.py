"""Checks of all tensors of a model. A tensor in another file must be in the model's folder."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, MutableMapping, Sized
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from compiler.errors import Diagnostic

__all__ = ["check_data", "check_tensors", "tensors_in", "tensors_of"]


def check_tensors(model: ir.Model, proto: onnx.ModelProto, folder: Path | None) -> list[Diagnostic]:
    """Check that every tensor has as many elements as its shape says, and remove invalid tensors.

    The library that reads tensors restricts files to a folder only if the caller names one. Therefore this function
    also refuses a tensor in another file that is not one of the model's weights.
    """
    tensors = list(tensors_in(model))
    met = sum(isinstance(tensor, ir.ExternalTensor) for _, tensor, _ in tensors)
    is_complete = met == sum(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors_of(proto))
    found = (
        []
        if is_complete
        else [Diagnostic("CC0103", "a tensor in another file is not a weight of the model: store it in the model")]
    )
    for name, tensor, forget in tensors:
        if isinstance(tensor, ir.ExternalTensor) and (folder is None or not is_complete or not tensor.location):
            forget()
        elif problem := _check(name, tensor, folder):
            forget()
            found.append(problem)
    return found


def tensors_of(message: Any) -> Iterator[onnx.TensorProto]:
    """Every tensor in any field of a protobuf message."""
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.name in _WITHOUT_TENSORS:
            continue
        for part in [value] if hasattr(value, "ListFields") else value:
            if isinstance(part, onnx.TensorProto):
                yield part
            else:
                yield from tensors_of(part)


_WITHOUT_TENSORS = frozenset(["StringStringEntryProto", "ValueInfoProto", "TypeProto", "OperatorSetIdProto"])
"""Frequent messages without tensors."""


def _check(name: str, tensor: ir.TensorProtocol, folder: Path | None) -> Diagnostic | None:
    code = "CC0101"
    if isinstance(tensor, ir.ExternalTensor):
        code, tensor.base_dir = "CC0103", str(folder)
    if any(isinstance(size, int) and size < 0 for size in tensor.shape):
        return Diagnostic(code, f"the weight {name!r} has the shape {list(tensor.shape)}, with a negative size")
    try:
        if isinstance(tensor, ir.TensorProtoTensor):
            check_data(tensor.raw)
        tensor.numpy()
    except (AssertionError, OSError, TypeError, ValueError) as error:
        return Diagnostic(code, f"the weight {name!r}: {error}")
    return None


def check_data(tensor: onnx.TensorProto) -> None:
    """Check that the data fill the shape if a reader would not: readers pad or cut elements of less than a byte.

    They also fill a tensor without any data with zeros.

    Raises:
        ValueError: there are too few or too many elements.
    """
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return
    shape = tuple(tensor.dims)
    if not any(map(len, _fields(tensor))) and 0 not in shape:
        raise ValueError(f"cannot reshape array of size 0 into shape {shape}")
    try:
        bits = int(ir.DataType(tensor.data_type).bitwidth)
    except (TypeError, ValueError):  # strings, no type, or an unknown type
        return
    # An item of int32_data holds a byte, or a single element of 6 bits.
    is_raw = tensor.HasField("raw_data")
    held, width = (len(tensor.raw_data), bits) if is_raw else (len(tensor.int32_data), 8 if bits == 6 else bits)
    if bits < 8 and held != -(-math.prod(shape) * width // 8):
        raise ValueError(f"cannot reshape array of size {held * 8 // width} into shape {shape}")


def _fields(tensor: onnx.TensorProto) -> tuple[Sized, ...]:
    """The fields that may hold a tensor's data."""
    numbers = (tensor.int32_data, tensor.int64_data, tensor.uint64_data, tensor.float_data, tensor.double_data)
    return (tensor.raw_data, tensor.string_data, *numbers)


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The model's graph, the bodies of its functions, and the graphs nested in them."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        yield graph
        yield from graph.subgraphs()


_Tensor = tuple[str, ir.TensorProtocol, Callable[[], object]]
"""A tensor, its name, and a function that removes it."""


def tensors_in(model: ir.Model) -> Iterator[_Tensor]:
    """The tensors of a model: initializers, and the tensors in attributes of nodes and functions."""
    for graph in _graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value.name or "", value.const_value, partial(setattr, value, "const_value", None)
        for node in graph:
            yield from _of_attributes(node.name or node.op_type, node.attributes)
    for function in model.functions.values():
        yield from _of_attributes(function.name, function.attributes)


def _of_attributes(owner: str, attributes: MutableMapping[str, ir.Attr]) -> Iterator[_Tensor]:
    for key, attribute in attributes.items():
        if attribute.is_ref() or attribute.value is None:
            continue
        forget = partial(attributes.pop, key, None)
        if attribute.type == ir.AttributeType.TENSOR:
            yield f"{owner}.{key}", attribute.value, forget
        elif attribute.type == ir.AttributeType.TENSORS:
            yield from ((f"{owner}.{key}", tensor, forget) for tensor in attribute.value)
