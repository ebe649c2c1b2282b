"""MNN, an engine to compare with: conversion of a model, and runs.

MNN has a file format of its own. A separate process converts a model once and runs it, because MNN may crash. The
converted model and a note with the names of its inputs and outputs stay in a folder for temporary files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.reference import Reference, ReferenceFailed
from compiler.atomic_files import write_whole
from compiler.processes.fresh import ProcessDied, in_fresh_process

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["convert", "load_mnn"]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard what MNN prints on the process's standard output and error."""
    kept = [os.dup(number) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number in (1, 2):
            os.dup2(nowhere, number)
        yield
    finally:
        for number, before in zip((1, 2), kept, strict=True):
            os.dup2(before, number)
            os.close(before)
        os.close(nowhere)


with _quiet():
    import MNN
    import MNN.expr
    import MNN.nn

__version__ = MNN.version()

OPTIONS = ("--useOriginRNNImpl",)
"""Options of the conversion. MNN otherwise turns recurrent layers into loops, which crash, give wrong results, or are
slower."""

KINDS = {"float32": "float", "int32": "int", "int64": "int", "int8": "int8", "uint8": "uint8"}
"""dtype of an input → MNN's type. MNN has no 64-bit integers."""


@dataclass(frozen=True)
class Note:
    """The names of a converted model's inputs and outputs, or the reason why MNN cannot run it."""

    inputs: list[str]
    outputs: list[str]
    problem: str = ""


def load_mnn(model: Path, inputs: Mapping[str, Any], threads: int) -> Callable[[], dict[str, Any]]:
    """Load a model in full precision, with fixed shapes, and return a function that runs it on the inputs.

    Raises:
        ReferenceFailed: MNN refuses the model or crashes.
    """
    converted = _place(model, inputs)
    note = convert(model, inputs)
    if note.problem:
        raise ReferenceFailed(note.problem)
    with _quiet():
        return _loaded(converted, {name: inputs[name] for name in note.inputs}, note.outputs, threads)


def _place(model: Path, inputs: Mapping[str, Any]) -> Path:
    """Where the converted model stays while the model's file, the shapes and MNN's version stay the same."""
    shapes = [(name, array.dtype.name, array.shape) for name, array in inputs.items()]
    state = (str(model.resolve()), model.stat().st_mtime_ns, model.stat().st_size)
    key = hashlib.sha256(repr((__version__, OPTIONS, state, shapes)).encode())
    folder = Path(tempfile.gettempdir()) / f"candlec-mnn-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{key.hexdigest()}.mnn"


def convert(model: Path, inputs: Mapping[str, Any]) -> Note:
    """Convert a model in a separate process, unless it is converted, and return the note on it."""
    converted = _place(model, inputs)
    kept = converted.with_suffix(".json")
    if not kept.exists():
        try:
            note = in_fresh_process(_convert, model, converted, inputs)
        except ProcessDied:
            note = Note([], [], "MNN crashes on the model")
        except ReferenceFailed as error:  # onnxruntime names the inputs and outputs
            note = Note([], [], str(error))
        write_whole(kept, json.dumps(asdict(note)).encode())
    return Note(**json.loads(kept.read_bytes()))


def _convert(model: Path, converted: Path, inputs: Mapping[str, Any]) -> Note:
    """Convert the model and run it once."""
    source = Reference(model, as_written=True)
    with _quiet():
        # The command `mnnconvert` and the package MNN.tools install packages and call a server. This module does not.
        import _tools

        files = ["--modelFile", str(model), "--MNNModel", str(converted)]
        _tools.mnnconvert(["", "-f", "ONNX", *files, "--bizCode", "", *OPTIONS])
    if not converted.exists():
        return Note([], [], "MNN refuses the model: it does not convert it")
    try:
        with _quiet():
            _loaded(converted, {name: inputs[name] for name in source.inputs}, source.outputs, 1)()
    except (ReferenceFailed, RuntimeError, ValueError) as error:
        return Note([], [], str(error))
    return Note(source.inputs, source.outputs)


def _loaded(
    converted: Path, inputs: Mapping[str, Any], outputs: list[str], threads: int
) -> Callable[[], dict[str, Any]]:
    for name, array in inputs.items():
        if array.dtype.name not in KINDS:
            raise ReferenceFailed(f"MNN refuses the model: its input {name} is {array.dtype}")
    arrays = [np.ascontiguousarray(a, "int32" if a.dtype == "int64" else a.dtype) for a in inputs.values()]
    # MNN's tensor does not hold its array: this does.
    variables = [
        MNN.expr.const(array, list(array.shape), MNN.expr.NCHW, getattr(MNN.expr, KINDS[array.dtype.name]))
        for array in arrays
    ]
    runtime = MNN.nn.create_runtime_manager(({"backend": "CPU", "numThread": threads, "precision": "high"},))
    module = MNN.nn.load_module_from_file(
        str(converted), list(inputs), outputs, runtime_manager=runtime, shape_mutable=False, dynamic=False
    )

    def run() -> dict[str, Any]:
        for variable, array in zip(variables, arrays, strict=True):
            variable.write(array)
        found = module.onForward(variables)
        return {name: _in_order(variable).read() for name, variable in zip(outputs, found, strict=True)}

    return run


def _in_order(variable: Any) -> Any:
    """An output in the order of its axes: MNN may keep channels in blocks of four."""
    return MNN.expr.convert(variable, MNN.expr.NCHW) if variable.data_format == MNN.expr.NC4HW4 else variable
