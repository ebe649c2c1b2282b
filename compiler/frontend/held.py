"""Takes apart models that a program holds in memory: objects of onnx_ir and of PyTorch.

The compiler changes its models in place, so it never works on the caller's object. It writes the model as protobuf. A
protobuf holds at most 2 GiB, so large weights stay outside of it, without a copy.
"""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir

from compiler.errors import CompileError, Diagnostic
from compiler.frontend.tensors import check_data, tensors_in

if TYPE_CHECKING:
    import torch

    Held = ir.Model | torch.onnx.ONNXProgram | torch.export.ExportedProgram

__all__ = ["Parts", "export_advice", "root_cause", "take_apart"]

_SMALL = 1 << 10
"""The most bytes of a weight that stays in the protobuf."""


@dataclass(frozen=True)
class Parts:
    """A model as protobuf, the folder of its external weights, and its large weights by name."""

    data: bytes
    folder: Path | None
    weights: Mapping[str, ir.TensorProtocol] = field(default_factory=dict)

    def restore(self, model: ir.Model) -> None:
        """Give the model that was made of `data` its large weights."""
        for name, weight in self.weights.items():
            model.graph.initializers[name].const_value = weight

    def sha256(self) -> str:
        """The SHA-256 of the protobuf and of the large weights, as hexadecimal digits."""
        digest = hashlib.sha256(self.data)
        for weight in self.weights.values():
            digest.update(weight.tobytes())
        return digest.hexdigest()


def take_apart(source: Any) -> Parts | None:
    """The parts of an `onnx_ir.Model`, a `torch.onnx.ONNXProgram` or a `torch.export.ExportedProgram`.

    Returns `None` for any other object. PyTorch need not be installed.

    Raises:
        CompileError: the model cannot be written, its weights cannot be read, or they are in several folders.
        ExportError: PyTorch cannot translate the `ExportedProgram`.
    """
    if _is_instance(source, "torch.export", "ExportedProgram"):
        from compiler.frontend.captured import onnx_program

        source = onnx_program(source, "the ExportedProgram")
    if _is_instance(source, "torch.onnx", "ONNXProgram"):
        source = source.model
    return _parts(source) if isinstance(source, ir.Model) else None


def export_advice(source: Any) -> str:
    """What to do with a module of PyTorch instead of compiling it; empty for any other object."""
    if _is_instance(source, "torch.jit", "ScriptModule"):
        return ": export the module that it was made of with compiler.export, and compile the file"
    if _is_instance(source, "torch.nn", "Module"):
        return ": export it with compiler.export(module, args, path), and compile the file"
    return ""


def _is_instance(source: Any, module: str, name: str) -> bool:
    """Whether an object is of a class of a module that may not be imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(source, kind)


def _parts(model: ir.Model) -> Parts:
    folder = _folder(model)
    proto = _without_weights(model)
    weights: dict[str, ir.TensorProtocol] = {}
    for name, value in model.graph.initializers.items():
        if value.const_value is not None:
            proto.graph.initializer.append(_written(name, value.const_value, weights))
    try:
        return Parts(proto.SerializeToString(deterministic=True), folder, weights)
    except Exception as error:  # protobuf's EncodeError, which has no type stubs, or ValueError
        raise _refuse(f"the model without its large weights does not fit a protobuf: {error}") from None


def _folder(model: ir.Model) -> Path | None:
    """The folder of the weights in other files.

    Raises:
        CompileError: there are several.
    """
    tensors = (tensor for _, tensor, _ in tensors_in(model))
    folders = {Path(each.base_dir).absolute() for each in tensors if isinstance(each, ir.ExternalTensor)}
    if len(folders) > 1:
        found = ", ".join(sorted(map(str, folders)))
        message = f"the weights of the model are in several folders: {found}"
        raise CompileError([Diagnostic("CC0103", message, help="copy their files into one folder")])
    return folders.pop() if folders else None


def _without_weights(model: ir.Model) -> onnx.ModelProto:
    """The model without the initializers of its graph. The caller's model stays as it is."""
    graph = model.graph
    view = ir.GraphView(
        graph.inputs,
        graph.outputs,
        nodes=graph,
        doc_string=graph.doc_string,
        opset_imports=dict(graph.opset_imports),
        name=graph.name,
        metadata_props=dict(graph.metadata_props),
    )
    shell = ir.Model(
        view,  # type: ignore[arg-type]  # onnx_ir documents it
        ir_version=model.ir_version,
        producer_name=model.producer_name,
        producer_version=model.producer_version,
        domain=model.domain,
        model_version=model.model_version,
        doc_string=model.doc_string,
        functions=list(model.functions.values()),
        metadata_props=dict(model.metadata_props),
    )
    try:
        return ir.serde.serialize_model(shell)
    except Exception as error:  # onnx_ir reports malformed models with many types of exception
        raise _refuse(f"this onnx_ir.Model cannot be written: {root_cause(error)}") from error


def _written(name: str, tensor: ir.TensorProtocol, weights: dict[str, ir.TensorProtocol]) -> onnx.TensorProto:
    """The weight as protobuf. The function adds a large one to `weights` instead, and omits its elements.

    Raises:
        CompileError: the weight cannot be read.
    """
    try:
        if isinstance(tensor, ir.TensorProtoTensor):
            check_data(tensor.raw)
        kept = isinstance(tensor, ir.ExternalTensor) or tensor.dtype == ir.DataType.STRING
        if kept or tensor.nbytes <= _SMALL:
            proto = ir.serde.serialize_tensor(tensor)
        else:
            array = tensor.numpy()
            weights[name] = ir.Tensor(array, dtype=tensor.dtype, name=name)
            proto = onnx.TensorProto(data_type=tensor.dtype.value, dims=array.shape)
    except Exception as error:  # of the class of the tensor, which may be the caller's own
        raise _refuse(f"the weight {name!r}: {root_cause(error)}") from error
    proto.name = name
    return proto


def _refuse(message: str) -> CompileError:
    return CompileError([Diagnostic("CC0101", message)])


def root_cause(error: BaseException) -> BaseException:
    """The first exception in the chain of causes of an exception."""
    return error if error.__cause__ is None else root_cause(error.__cause__)
