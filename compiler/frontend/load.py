"""Loads a model from a path, bytes, a ModelProto or an object in memory as a checked `onnx_ir.Model`."""

from __future__ import annotations

from compiler.ir import sympy_later  # noqa: F401  (before anything imports onnx_ir)

# isort: split
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper

from compiler.errors import CompileError, Diagnostic, program
from compiler.frontend.declarations import (
    check_constants,
    check_names,
    check_text,
    check_value_kinds,
    node_lists,
    output_types,
)
from compiler.frontend.external import check_external
from compiler.frontend.held import Parts, export_advice, root_cause, take_apart
from compiler.frontend.tensors import check_data, check_tensors, tensors_of
from compiler.frontend.tolerance import repeated_weights, tolerate
from compiler.ir import onnx_schema, origin
from compiler.ir.graph import OUTPUT_TYPES, nodes_of
from compiler.ir.symbols import symbol_of

if TYPE_CHECKING:
    from compiler.frontend.held import Held

__all__ = ["Changed", "Loaded", "Source", "load_model"]

LARGEST = 2**31 - 1
"""The largest size of a protobuf file, in bytes."""

_PLAN, _PLAN_WITHIN = b'"format":"candle-plan"', 200

Source = str | os.PathLike[str] | bytes | onnx.ModelProto


@dataclass(frozen=True)
class Changed:
    """A model that a function changes in place, each time after it is loaded.

    Unlike an `onnx.ModelProto`, it may have weights of more than 2 GiB in other files.
    """

    source: Source | Held | Changed
    change: Callable[[ir.Model], None]


@dataclass(frozen=True)
class Loaded:
    """A model and the SHA-256 of the bytes and large weights that it was read from."""

    model: ir.Model
    sha256: str
    warnings: tuple[Diagnostic, ...] = ()
    """The corrections of an invalid file that onnxruntime runs."""


def load_model(
    source: Source | Held | Changed, found: list[Diagnostic] | None = None, *, strict: bool = False
) -> Loaded:
    """Read a model, and record every node's origin. An object in memory stays as it is.

    With `found`, the function adds errors of weights and opsets to this list, so that a caller can report more errors
    of the model. The model then lacks these weights, and stays as it is in the file. With `strict`, the function does
    not correct what ONNX does not allow, but onnxruntime does.

    Raises:
        CompileError: the source is not a readable model; or, without `found`, a weight or opset is invalid.
        ExportError: the source is an `ExportedProgram` that PyTorch cannot translate.
    """
    if isinstance(source, Changed):
        return _load_changed(source, found, strict)
    wrong: list[Diagnostic] = []
    parts = take_apart(source) or _read(source)
    folder = parts.folder
    proto = _parse(parts.data, source)  # a copy, because the checks remove parts of it
    if unusable := check_text(proto):
        raise CompileError(unusable)
    warnings = [] if strict else tolerate(proto)
    if unusable := [*check_names(proto), *(repeated_weights(proto) if strict else [])]:
        raise CompileError(unusable)
    wrong += [*_expand_sparse(proto), *check_value_kinds(proto), *check_external(tensors_of(proto), folder)]
    if misfits := check_constants(proto):
        raise CompileError([*wrong, *misfits])
    declared = output_types(proto)
    model = _deserialize(proto)
    parts.restore(model)
    model.graph.metadata_props[OUTPUT_TYPES] = json.dumps(declared)
    wrong += [*check_tensors(model, proto, folder), *_check_opsets(model)]
    if wrong and found is None:
        raise CompileError(wrong)
    if found is not None:
        found += wrong
    _fix_symbols(model)
    origin.record(model)
    return Loaded(model, parts.sha256(), tuple(warnings))


def _load_changed(changed: Changed, found: list[Diagnostic] | None, strict: bool) -> Loaded:
    """Read a model, and change it if all of its weights and opsets are valid."""
    wrong: list[Diagnostic] = []
    loaded = load_model(changed.source, None if found is None else wrong, strict=strict)
    if found is not None and wrong:
        found += wrong
    else:
        changed.change(loaded.model)
    return loaded


def _refuse(code: str, message: str, help: str = "") -> CompileError:
    return CompileError([Diagnostic(code, message, help=help)])


_KINDS = "a path, bytes, onnx.ModelProto, onnx_ir.Model, torch.onnx.ONNXProgram or torch.export.ExportedProgram"


def _read(source: object) -> Parts:
    if isinstance(source, onnx.ModelProto):
        return Parts(source.SerializeToString(deterministic=True), None)
    if isinstance(source, bytes | bytearray | memoryview):
        return Parts(bytes(source), None)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"a model must be {_KINDS}, not {type(source).__name__}{export_advice(source)}")
    if not os.fspath(source):
        raise _refuse("CC0102", "the path of the model is empty")
    path = Path(source)
    try:
        if path.stat().st_size > LARGEST:
            help = "store the weights in a separate file (external data)"
            raise _refuse("CC0101", f"{path} is larger than 2 GiB, the limit of ONNX files", help)
        return Parts(path.read_bytes(), path.absolute().parent)
    except OSError as error:
        advice = "check the path: it starts at the current folder" if isinstance(error, FileNotFoundError) else ""
        raise _refuse("CC0102", f"{path}: {error.strerror or error}", advice) from None
    except ValueError as error:
        raise _refuse("CC0102", f"{os.fspath(source)!r}: {error}") from None


_AGAIN = "download or export it again"
_TOO_DEEP = "its graphs (of If, Loop and Scan) are nested too deeply for protobuf; a plan allows at most 20 levels"


def _parse(data: bytes, source: object) -> onnx.ModelProto:
    proto, name = onnx.ModelProto(), source if isinstance(source, str | os.PathLike) else "this"
    advice = ""
    try:
        proto.ParseFromString(data)
        wrong = "" if proto.HasField("graph") and proto.opset_import else "it has no graph or no opset"
    except Exception as error:  # protobuf's DecodeError, which has no type stubs
        wrong, advice = "it is truncated, or of another format", _AGAIN
        if "MaxDepth" in str(error):
            wrong, advice = _TOO_DEEP, ""
    if not data:
        wrong, advice = "it is empty", _AGAIN
    if _PLAN in data[:_PLAN_WITHIN]:
        raise _refuse("CC0101", f"{name} is a plan, not a model", f"`{program()} run` runs it")
    if wrong:
        raise _refuse("CC0101", f"{name} is not an ONNX model: {wrong}", advice)
    return proto


def _expand_sparse(model: onnx.ModelProto) -> list[Diagnostic]:
    """Replace sparse tensors with dense ones, in place. An invalid one becomes empty."""
    wrong: list[Diagnostic] = []
    for holder in node_lists(model):
        for attribute in (attribute for node in holder.node for attribute in node.attribute):
            if attribute.name == "sparse_value" and attribute.HasField("sparse_tensor"):
                attribute.t.CopyFrom(_dense(attribute.sparse_tensor, wrong))
                attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
                attribute.ClearField("sparse_tensor")
        if isinstance(holder, onnx.GraphProto):
            holder.initializer.extend(_dense(sparse, wrong) for sparse in holder.sparse_initializer)
            holder.ClearField("sparse_initializer")
    return wrong


def _dense(sparse: onnx.SparseTensorProto, wrong: list[Diagnostic]) -> onnx.TensorProto:
    """The dense tensor. The indices of `sparse` are positions in row-major order, or one row for each value."""
    name, dims = sparse.values.name, list(sparse.dims)
    if onnx.TensorProto.EXTERNAL in (sparse.values.data_location, sparse.indices.data_location):
        wrong.append(Diagnostic("CC0103", f"the sparse tensor {name!r} is in another file: store it in the model"))
        return numpy_helper.from_array(np.zeros(0, np.float32), name)
    try:
        check_data(sparse.values)
        check_data(sparse.indices)
        values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
        if values.dtype == object or min(dims, default=1) < 1 or math.prod(dims) * values.itemsize > LARGEST:
            raise ValueError(f"{dims} is not a shape for a sparse tensor of {values.dtype}")
        places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), tuple(dims))
        if indices.dtype != np.int64 or values.ndim != 1 or values.shape != places.shape:
            raise ValueError(f"{values.shape} values do not fit {indices.dtype} indices of {indices.shape}")
        if (places < 0).any() or (places >= math.prod(dims)).any():
            raise ValueError(f"an index is outside {dims}")
    except (TypeError, ValueError, AttributeError, OSError) as error:
        wrong.append(Diagnostic("CC0101", f"the sparse tensor {name!r}: {error}"))
        return numpy_helper.from_array(np.zeros(0, np.float32), name)
    dense = np.zeros(math.prod(dims), values.dtype)
    dense[places] = values
    return numpy_helper.from_array(dense.reshape(dims), name)


def _deserialize(proto: onnx.ModelProto) -> ir.Model:
    try:
        model = ir.serde.deserialize_model(proto)
    except Exception as error:  # onnx_ir reports malformed protos with many types of exception
        raise _refuse("CC0101", f"this is not a valid ONNX model: {root_cause(error)}") from error
    _check_nodes(model)
    return model


def _check_nodes(model: ir.Model) -> None:
    """Check that attributes have a type."""
    problems = []
    in_functions = (node for function in model.functions.values() for node in function.graph.all_nodes())
    for node in (*nodes_of(model), *in_functions):
        untyped = [name for name, each in node.attributes.items() if each.type == ir.AttributeType.UNDEFINED]
        problems += [f"attribute {name!r} of {node.op_type!r} has no type" for name in untyped]
    if problems:
        raise CompileError([Diagnostic("CC0101", f"this is not a valid ONNX model: {each}") for each in problems])


def _check_opsets(model: ir.Model) -> list[Diagnostic]:
    opset = model.opset_imports.get("")
    if opset is not None and not onnx_schema.OLDEST <= opset <= onnx_schema.NEWEST:
        message = f"opset {opset} is not between {onnx_schema.OLDEST} and {onnx_schema.NEWEST}"
        return [Diagnostic("CC0104", message)]
    return []


def _fix_symbols(model: ir.Model) -> None:
    """Turn names of dimensions into symbols, which expressions can contain."""
    for value in model.graph.inputs:
        if value.shape is not None:
            value.shape = ir.Shape(
                [_dim(dim) if isinstance(dim, int) else symbol_of(dim.value or "") for dim in value.shape]
            )
    for value in (*model.graph.outputs, *(each for node in nodes_of(model) for each in node.outputs)):
        if value.shape is not None and any(isinstance(dim, int) and dim < 0 for dim in value.shape):
            value.shape = ir.Shape([_dim(dim) if isinstance(dim, int) else dim for dim in value.shape])


def _dim(size: int) -> int | None:
    """A size; `None` for a negative size, which some exporters write for an unknown size."""
    return None if size < 0 else size
