"""Export of PyTorch modules with a check: the compiled model must compute what the module computes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.accuracy.exported_check import check_model
from compiler.frontend.export import write_model
from compiler.frontend.export_request import Exporter, Request

if TYPE_CHECKING:
    import torch

__all__ = ["ExportWarning", "export"]


class ExportWarning(UserWarning):
    """A warning about an exported model: the exporter that wrote it, or a comparison that was not possible."""


def _refuse_value(argument: str, value: Any, reason: str) -> None:
    """Refuse an argument of `torch.export.export` that means nothing here.

    Raises:
        ValueError: it has a value.
    """
    if value is not None:
        advice = f"call torch.export.export(…, {argument}={value!r}), and compile the ExportedProgram"
        raise ValueError(f"{argument}: leave it out, because {reason}; or {advice}")


def export(
    module: torch.nn.Module,
    args: Sequence[Any],
    path: str | Path,
    dynamic: Mapping[str, Mapping[int, str]] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    outputs: Sequence[str] | None = None,
    opset: int | None = None,
    optimize: bool = False,
    exporter: Exporter = "auto",
    custom_translation_table: Mapping[Any, Callable[..., Any]] | None = None,
    check: bool = True,
    locate: bool = False,
    strict: None = None,
    preserve_module_call_signature: None = None,
    prefer_deferred_runtime_asserts_over_guards: None = None,
) -> Path:
    """Export `module`, called with `args` and `kwargs`, to the ONNX file `path`, and return the path.

    `args`, `kwargs` and `dynamic_shapes` are what `torch.export.export` takes. This function refuses values of its
    other arguments: `strict`, because PyTorch's exporter tries both modes, `preserve_module_call_signature`, because an
    ONNX model has no modules, and `prefer_deferred_runtime_asserts_over_guards`, because an ONNX model has no
    assertions. `dynamic` is a shorter form of `dynamic_shapes`: it names the dimensions that may vary, as in `{"x": {0:
    "batch", 2: "time"}}`. Dimensions with the same name have the same size. `outputs` names the outputs. The function
    exports the module in evaluation mode, and restores the module's mode afterwards. It makes the names of Python files
    in stack traces relative to the working folder, so that the ONNX file says nothing about the machine. The exporter's
    own optimizer is off by default: it gives a fused node the origin of only one of its parts, and the compiler's
    passes do the same work.

    `exporter` chooses one of PyTorch's exporters. `"dynamo"` captures a graph with `torch.export`. The function adds
    ONNX functions for operators that PyTorch cannot translate; `custom_translation_table` adds others, as for
    `torch.onnx.export`. `"torchscript"` runs the module once, and records its operators. Such a model keeps what Python
    decided in this run, for example branches. `"auto"` tries the first, and the second one if the first refuses the
    module.

    PyTorch's exporters sometimes write a model that computes a different function than the module. With `check`, the
    function therefore compiles the model, runs the module and the plan, and compares every output as `verify` does. It
    uses the given arguments. If dimensions may vary, it also uses arguments of other sizes. For a recorded model
    without such dimensions, it also uses other values of the same sizes. It runs the module three times or more, and
    restores the module's tensors, attributes and mode. With `locate`, an error also names the first part of the module
    whose value differs. The file of a model with a difference stays, so that other tools can examine it.

    The function warns with an `ExportWarning` if `"auto"` chose the TorchScript exporter, if the model keeps decisions
    of Python, or if the function could not check the model: the compiler refuses it, or the module's results are
    random.

    Needs PyTorch: `pip install "candle-compiler[export]"`.

    Raises:
        ModuleNotFoundError: PyTorch or onnxscript is not installed.
        TypeError, ValueError: an argument has a wrong type or value, or names an unknown input or dim.
        ExportError: PyTorch cannot export the module, or the model computes another function.
    """
    _refuse_value("strict", strict, "PyTorch's exporter tries both modes")
    _refuse_value("preserve_module_call_signature", preserve_module_call_signature, "an ONNX model has no modules")
    deferred = "prefer_deferred_runtime_asserts_over_guards"
    _refuse_value(deferred, prefer_deferred_runtime_asserts_over_guards, "an ONNX model has no assertions")
    how = (opset, optimize, exporter, custom_translation_table)
    request = Request(module, args, kwargs or {}, dynamic, dynamic_shapes, outputs, *how)
    exported = write_model(request, path)
    for note in exported.notes:
        warnings.warn(f"{path}: {note}", ExportWarning, stacklevel=2)
    if check:
        for note in check_model(exported, locate=locate).notes:
            warnings.warn(f"{path}: {note}", ExportWarning, stacklevel=2)
    return exported.path
