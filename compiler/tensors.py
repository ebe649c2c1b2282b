"""The tensors of a model, wherever they stand. One in another file lies in the model's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from compiler.errors import Diagnostic

__all__ = ["check_external", "check_tensors"]


def check_external(model: onnx.ModelProto, folder: Path | None) -> list[Diagnostic]:
    """The tensors in other files that nothing may read: all of them where no folder is known, and sparse ones."""
    found = []
    for tensor, is_sparse in _protos(model):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        if folder is None:
            message = f"the weight {tensor.name!r} is in the file {location!r}: give the model's path"
            found.append(Diagnostic("CC0103", message))
        elif is_sparse:
            found.append(Diagnostic("CC0103", f"the sparse tensor {tensor.name!r} is in the file {location!r}"))
    return found


def _protos(message: Any, is_sparse: bool = False) -> Iterator[tuple[onnx.TensorProto, bool]]:
    """Every tensor of a protobuf, and whether it is part of a sparse one, whatever field it is in."""
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.name in _WITHOUT_TENSORS:
            continue
        for part in [value] if hasattr(value, "ListFields") else value:
            if isinstance(part, onnx.TensorProto):
                yield part, is_sparse
            else:
                yield from _protos(part, is_sparse or isinstance(part, onnx.SparseTensorProto))


_WITHOUT_TENSORS = frozenset(["StringStringEntryProto", "ValueInfoProto", "TypeProto", "OperatorSetIdProto"])
"""Messages that hold no tensor, of which a model has many."""


def check_tensors(model: ir.Model, proto: onnx.ModelProto, folder: Path | None) -> list[Diagnostic]:
    """Every tensor has the elements its shape says; one in another file lies in the model's folder.

    The library that reads the tensors looks at the folder only where it is told one. So a tensor in another file that
    is in the file and was not met here is refused, too.
    """
    tensors = list(_tensors(model))
    external = sum(isinstance(tensor, ir.ExternalTensor) for _, tensor in tensors)
    if external != sum(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor, _ in _protos(proto)):
        return [Diagnostic("CC0103", "a weight is in another file, and it stands where no weight of a model does")]
    found = (_check(name, tensor, folder) for name, tensor in tensors)
    return [diagnostic for diagnostic in found if diagnostic is not None]


def _check(name: str, tensor: ir.TensorProtocol, folder: Path | None) -> Diagnostic | None:
    is_external = isinstance(tensor, ir.ExternalTensor)
    if isinstance(tensor, ir.ExternalTensor):
        tensor.base_dir = str(folder)
    try:
        tensor.numpy()
    except (AssertionError, OSError, TypeError, ValueError) as error:
        return Diagnostic("CC0103" if is_external else "CC0101", f"the weight {name!r}: {error}")
    return None


def _graphs(model: ir.Model) -> Iterator[ir.Graph]:
    """The model's graph, the bodies of its functions, and the graphs nested in them."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        yield graph
        yield from graph.subgraphs()


def _tensors(model: ir.Model) -> Iterator[tuple[str, ir.TensorProtocol]]:
    """The tensors of a model by name: initializers, and those in attributes of nodes and functions."""
    for graph in _graphs(model):
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value.name or "", value.const_value
        for node in graph:
            yield from _of_attributes(node.name or node.op_type, node.attributes.values())
    for function in model.functions.values():
        yield from _of_attributes(function.name, function.attributes.values())


def _of_attributes(owner: str, attributes: Any) -> Iterator[tuple[str, ir.TensorProtocol]]:
    for attribute in attributes:
        name = f"{owner}.{attribute.name}"
        if attribute.is_ref() or attribute.value is None:
            continue
        if attribute.type == ir.AttributeType.TENSOR:
            yield name, attribute.value
        elif attribute.type == ir.AttributeType.TENSORS:
            yield from ((name, tensor) for tensor in attribute.value)
