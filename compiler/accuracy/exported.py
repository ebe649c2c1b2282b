"""Export of PyTorch modules with a check: the compiled model must compute what the module computes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.accuracy.exported_check import check_model
from compiler.accuracy.module_runs import Call
from compiler.frontend.export import write_model

if TYPE_CHECKING:
    import torch

__all__ = ["ExportWarning", "export"]


class ExportWarning(UserWarning):
    """`compiler.export` could not compare a model with its module, or not with other sizes."""


def export(
    module: torch.nn.Module,
    args: Sequence[Any],
    path: str | Path,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    opset: int | None = None,
    optimize: bool = False,
    check: bool = True,
    locate: bool = False,
) -> Path:
    """Export `module`, called with `args` and `kwargs`, to the ONNX file `path`, and return the path.

    `args` and `kwargs` are what `torch.export.export` takes: tensors, numbers, and lists, tuples and dicts of them.
    `dynamic` names the dimensions that may vary: `{"x": {0: "batch", 2: "time"}}`. Dimensions with the same name have
    the same size. `outputs` names the outputs. The function exports the module in evaluation mode, and restores its
    mode afterwards. It makes the names of Python files in stack traces relative to the working folder, so that the ONNX
    file says nothing about the machine. The exporter's own optimizer is off by default: it gives a fused node the
    origin of only one of its parts, and the compiler's passes do the same work.

    PyTorch's exporter sometimes writes a model that computes another function than the module. With `check`, the
    function therefore compiles the model, runs the module and the plan, and compares every output as `verify` does. It
    uses the given arguments and, if `dynamic` names dimensions, others of other sizes. It runs the module three times
    or more, and restores the module's tensors, attributes and mode. With `locate`, an error also names the first part
    of the module whose value differs. The file of a model with a difference stays, so that other tools can examine it.

    The function warns with an `ExportWarning` if it could not check the model: the compiler refuses it, or the module's
    results are random.

    Needs PyTorch: `pip install "candle-compiler[export]"`.

    Raises:
        ModuleNotFoundError: PyTorch or onnxscript is not installed.
        TypeError, ValueError: an argument has a wrong type or value, or names an unknown input or dim.
        ExportError: PyTorch cannot export the module, or the model computes another function.
    """
    exported = write_model(module, args, path, dynamic, kwargs, outputs, opset, optimize)
    if check:
        checked = check_model(exported, Call(module, tuple(args), dict(kwargs or {})), dynamic or {}, locate=locate)
        for note in checked.notes:
            warnings.warn(f"{path}: {note}", ExportWarning, stacklevel=2)
    return exported.path
