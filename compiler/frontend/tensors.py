"""Checks of all tensors of a model. A tensor in another file must be in the model's folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from compiler.errors import Diagnostic

__all__ = ["check_tensors", "tensors_in", "tensors_of"]


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
        tensor.numpy()
    except (AssertionError, OSError, TypeError, ValueError) as error:
        return Diagnostic(code, f"the weight {name!r}: {error}")
    return None


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The model's graph, the bodies of its functions, and the graphs nested in them."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        yield graph
        yield from graph.subgraphs()


_Tensor = tuple[str, ir.TensorProtocol, Callable[[], object]]
"""A tensor, its name, and a function that removes it."""


def tensors_in(model: ir.Model) -> Iterator[_Tensor]:
    """The tensors of a model: initializers, and those in attributes of nodes and functions."""
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
