"""MNN, an engine to compare with: conversion of the model, a check of its outputs, and runs.

MNN has a file format of its own. A separate process converts a model once, runs it, and compares the outputs with
onnxruntime's, because MNN may crash, or compute wrong results, without an error. The converted model and the verdict
stay in a folder for temporary files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.accuracy.compare import TOLERANCES, compare
from compiler.accuracy.reference import Reference, ReferenceFailed
from compiler.bench.process import ProcessDied, in_fresh_process

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["load_mnn"]


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

LOOSE = 100
"""How many tolerances an output may differ from onnxruntime's: MNN rounds more than others, and is no reference."""

KINDS = {"float32": "float", "int32": "int", "int64": "int", "int8": "int8", "uint8": "uint8"}
"""dtype of an input → MNN's type. MNN has no 64-bit integers."""


def load_mnn(model: Path, inputs: Mapping[str, Any], threads: int) -> Callable[[], dict[str, Any]]:
    """Load a model in full precision, with fixed shapes, and return a function that runs it on the inputs.

    Raises:
        ReferenceFailed: MNN refuses the model, crashes, or computes wrong outputs.
    """
    source = Reference(model, as_written=True)
    used = {name: inputs[name] for name in source.inputs}
    converted = _converted(model, used)
    with _quiet():
        return _loaded(converted, used, source.outputs, threads)


def _converted(model: Path, inputs: Mapping[str, Any]) -> Path:
    """The model in MNN's format, once its outputs were checked."""
    shapes = [(name, array.dtype.name, array.shape) for name, array in inputs.items()]
    key = hashlib.sha256(model.read_bytes() + repr((__version__, model.stat().st_mtime_ns, shapes)).encode())
    folder = Path(tempfile.gettempdir()) / f"candlec-mnn-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    converted = folder / f"{key.hexdigest()}.mnn"
    problem = converted.with_suffix(".txt")
    if not problem.exists():
        try:
            text = in_fresh_process(_problem, model, converted, inputs)
        except ProcessDied:
            text = "MNN crashes on the model"
        problem.write_text(text)
    if text := problem.read_text():
        raise ReferenceFailed(text)
    return converted


def _problem(model: Path, converted: Path, inputs: Mapping[str, Any]) -> str:
    """Convert the model, run it, and compare its outputs; the reason against it, or nothing."""
    with _quiet():
        # The command `mnnconvert` and the package MNN.tools install packages and call a server. This module does not.
        import _tools

        _tools.mnnconvert(["", "-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(converted), "--bizCode", ""])
    if not converted.exists():
        return "MNN refuses the model: it does not convert it"
    source = Reference(model)
    try:
        with _quiet():
            run = _loaded(converted, inputs, source.outputs, 1)
            found = run()
    except (ReferenceFailed, RuntimeError, ValueError) as error:
        return str(error)
    expected = source.run(inputs)
    for name, array in expected.items():
        if found[name].size != array.size:
            return f"MNN's output {name} has shape {found[name].shape}, and onnxruntime's {array.shape}"
        found[name] = found[name].reshape(array.shape).astype(array.dtype)
    report = compare(expected, found, tolerance=LOOSE * TOLERANCES["float32"])
    wrong = [each for each in report.outputs if each.verdict == "different"]
    return "".join(f"MNN's output {each.name} is wrong by {each.max_abs:.3g}" for each in wrong[:1])


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
