"""Opens models and plans for a session, with the metadata that onnxruntime's interface shows."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.errors import CompileError, PlanError
from compiler.ir.symbols import shown
from compiler.ort.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, InvalidProtobuf, NoSuchFile
from compiler.ort.errors import of_model
from compiler.ort.options import GraphOptimizationLevel, SessionOptions
from compiler.plan import Plan
from compiler.plan.header import begins_as_plan, metadata_in
from compiler.runtime.session import Session, load

__all__ = ["ModelMetadata", "Opened", "opened"]

_NO_VERSION = 2**63 - 1
"""The version of a model without one, as in onnxruntime."""
_HEAD = 9
"""The bytes at the beginning of a file that show whether it is a plan."""


@dataclass(frozen=True)
class ModelMetadata:
    """The texts and the version in a model. A plan has only the map."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = _NO_VERSION
    custom_metadata_map: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Opened:
    """A session, and the metadata of the model."""

    session: Session
    metadata: ModelMetadata
    shapes: dict[str, Sequence[Any]]
    """The dimensions of outputs as the model declares them; empty for a plan."""


def opened(source: str | os.PathLike[str] | bytes, options: SessionOptions, device: str) -> Opened:
    """Compiles a model, or opens a plan, for a device.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidArgument, InvalidGraph, NotImplemented, Fail: the file does not exist, is
            neither a model nor a plan, or the compiler refuses the model.
        DeviceError: the device cannot be used.
        NotImplementedError: an option does not fit a plan.
    """
    if not isinstance(source, str | os.PathLike | bytes):
        raise TypeError(f"path_or_bytes: expected a path or bytes, found {type(source).__name__}")
    try:
        head = source[:_HEAD] if isinstance(source, bytes) else _head_of(source)
        if begins_as_plan(head):
            return _open_plan(source, options, device)
        return _compile(source, options, device)
    except CompileError as error:
        raise of_model(error) from error
    except PlanError as error:
        raise InvalidProtobuf(str(error)) from error


def _head_of(path: str | os.PathLike[str]) -> bytes:
    """The first bytes of a file; nothing for a folder."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(_HEAD)
    except (FileNotFoundError, ValueError):
        raise NoSuchFile(f"{os.fspath(path)!r} does not exist") from None
    except IsADirectoryError:
        return b""  # the compiler's own error is the better one
    except OSError as error:
        raise Fail(f"{os.fspath(path)}: {error.strerror or error}") from None
    if not head:
        raise InvalidArgument(f"{os.fspath(path)} is empty")
    return head


def _open_plan(source: str | os.PathLike[str] | bytes, options: SessionOptions, device: str) -> Opened:
    """A session for a plan."""
    if options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL:
        advice = "compile the model with compiler.Options(optimize=False)"
        raise NotImplementedError(f"ORT_DISABLE_ALL has no effect on a plan, which is compiled already: {advice}")
    if options.dimensions:
        advice = "compile the model with compiler.Options(dims={…})"
        raise NotImplementedError(f"the sizes of a plan cannot be fixed after it is compiled: {advice}")
    session = _session(Plan(source) if isinstance(source, bytes) else source, options, device)
    with io.BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb") as file:
        return Opened(session, ModelMetadata(custom_metadata_map=metadata_in(file)), {})


def _compile(source: str | os.PathLike[str] | bytes, options: SessionOptions, device: str) -> Opened:
    """A session for a model."""
    from compiler.options import Options
    from compiler.pipeline import compile

    if source == b"":
        raise InvalidArgument("the model is empty")
    seen: list[tuple[ModelMetadata, dict[str, Sequence[Any]]]] = []

    def look(_: object, model: Any) -> None:
        if not seen:  # the first pass does not change what these functions read
            seen.append((_metadata(model), _declared(model)))

    optimize = options.graph_optimization_level != GraphOptimizationLevel.ORT_DISABLE_ALL
    plan = compile(source, Options(optimize=optimize, dims=options.dimensions, on_model=look))
    return Opened(_session(plan, options, device), *seen[0])


def _session(plan: Plan | str | os.PathLike[str], options: SessionOptions, device: str) -> Session:
    return load(plan, device, options.intra_op_num_threads or None, options.refuses_host_steps)


def _metadata(model: Any) -> ModelMetadata:
    """The metadata of an `onnx_ir.Model`."""
    return ModelMetadata(
        model.producer_name or "",
        model.graph.name or "",
        model.domain or "",
        model.doc_string or "",
        model.graph.doc_string or "",
        _NO_VERSION if model.model_version is None else model.model_version,
        dict(model.metadata_props),
    )


def _declared(model: Any) -> dict[str, Sequence[Any]]:
    """The dimensions of the outputs of an `onnx_ir.Model`."""
    shaped = (value for value in model.graph.outputs if value.shape is not None)
    return {value.name: [dim if isinstance(dim, int) else _name(dim.value) for dim in value.shape] for value in shaped}


def _name(symbol: str | None) -> str | None:
    return None if symbol is None else shown(symbol)
