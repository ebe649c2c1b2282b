"""Reads a case in the format of the ONNX model zoo (`compiler.zoo.data_set`).

A file holds a TensorProto, SequenceProto or OptionalProto. The value belongs to the input or output whose name it has.
If the values of a folder do not all have such names, they are in the order of the model.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import onnx
from onnx import numpy_helper

from compiler.frontend.tensors import check_data, tensors_of
from compiler.zoo.data_set import numbered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from compiler.plan import TensorInfo

__all__ = ["read_declared", "read_inputs", "read_outputs"]


class _Declared(NamedTuple):
    """The names and kinds of a model's inputs and outputs. `given` names the inputs that are no initializers."""

    inputs: dict[str, str]
    given: tuple[str, ...]
    outputs: dict[str, str]


def read_declared(folder: Path, declared: Sequence[TensorInfo]) -> dict[str, Any]:
    """The inputs of a case by name, for a plan or a model with these inputs.

    Raises: as `read_inputs`.
    """
    kinds = {each.name: each.kind for each in declared}
    made = _read(folder, "input", kinds, tuple(kinds))
    if not made and kinds:
        raise ValueError(f"{folder} has no file input_0.pb")
    return made


def read_inputs(folder: Path, model: Path) -> dict[str, Any]:
    """The inputs of a case by name: arrays, lists for sequences, `None` for empty optionals.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is invalid, or the files do not fit the model.
    """
    declared = _declared_by(model)
    made = _read(folder, "input", declared.inputs, declared.given)
    if absent := [name for name in declared.given if name not in made]:
        raise ValueError(f"{folder} has no file for the input {absent[0]!r} of {model.name}")
    return made


def read_outputs(folder: Path, model: Path) -> dict[str, Any]:
    """The outputs of a case by name; the folder may lack some of them.

    Raises: as `read_inputs`.
    """
    outputs = _declared_by(model).outputs
    return _read(folder, "output", outputs, tuple(outputs))


def _read(folder: Path, kind: str, declared: dict[str, str], order: Sequence[str]) -> dict[str, Any]:
    """The values of one kind by name. `order` has the names in the order of the files."""
    files = numbered(folder, kind)
    if left := {*folder.glob(f"{kind}_*.pb")} - {*files}:
        raise ValueError(f"{min(left)} is left over: the files of {folder.name} are {kind}_0.pb, {kind}_1.pb and so on")
    if len(files) > len(declared):
        raise ValueError(f"{folder} has {len(files)} {kind}s, but the model has {len(declared)}")
    places = order if len(files) <= len(order) else tuple(declared)
    protos = [_parsed(file, declared[name]) for file, name in zip(files, places, strict=False)]
    names = [each.name for each in protos]
    if len({*names} & {*declared}) != len(names):
        names = list(places[: len(names)])
    return {name: _value(file, proto) for file, name, proto in zip(files, names, protos, strict=True)}


def _parsed(file: Path, kind: str) -> Any:
    """The message of a file for a value of this kind: a tensor, a sequence or an optional."""
    proto: Any = {"sequence": onnx.SequenceProto, "optional": onnx.OptionalProto}.get(kind, onnx.TensorProto)()
    try:
        proto.ParseFromString(file.read_bytes())
    except OSError:
        raise
    except Exception as error:  # protobuf's DecodeError, which has no type stubs
        raise ValueError(f"{file} holds no {type(proto).__name__}: it is truncated, or of another format") from error
    return proto


def _value(file: Path, proto: Any) -> Any:
    tensors = [proto] if isinstance(proto, onnx.TensorProto) else list(tensors_of(proto))
    try:
        if any(each.data_location == onnx.TensorProto.EXTERNAL for each in tensors):
            raise ValueError("a tensor is in another file")
        for each in tensors:
            check_data(each)
        if isinstance(proto, onnx.TensorProto):
            return numpy_helper.to_array(proto)
        return numpy_helper.to_list(proto) if isinstance(proto, onnx.SequenceProto) else numpy_helper.to_optional(proto)
    except (TypeError, ValueError, KeyError) as error:
        raise ValueError(f"{file} holds no {type(proto).__name__}: {error}") from error


def _declared_by(model: Path) -> _Declared:
    stated = model.stat()
    return _declared(model, stated.st_mtime_ns, stated.st_size)


@functools.lru_cache(maxsize=1)
def _declared(model: Path, _changed: int, _size: int) -> _Declared:
    try:
        graph = onnx.load(model, load_external_data=False).graph
    except OSError:
        raise
    except Exception as error:  # protobuf's DecodeError
        raise ValueError(f"{model} is not an ONNX model: it is truncated, or of another format") from error
    known = {each.name for each in graph.initializer} | {each.values.name for each in graph.sparse_initializer}
    inputs, outputs = ({each.name: _kind_of(each.type) for each in infos} for infos in (graph.input, graph.output))
    return _Declared(inputs, tuple(each for each in inputs if each not in known), outputs)


def _kind_of(declared: onnx.TypeProto) -> str:
    return (declared.WhichOneof("value") or "").removesuffix("_type").removeprefix("sparse_")
