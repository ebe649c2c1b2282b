"""Export with PyTorch's present exporter, which captures a graph (torch.export) and translates it to ONNX."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compiler.frontend.export_reasons import reason_of
from compiler.frontend.export_request import Exported, ExportError, Request, refusal
from compiler.frontend.output_names import name_outputs, separate_outputs
from compiler.frontend.source_lines import relative_trace

if TYPE_CHECKING:
    import torch

__all__ = ["by_dynamo", "logging_hidden", "onnx_program", "require_torch"]

_STACK_TRACE = "pkg.torch.onnx.stack_trace"


def require_torch() -> None:
    """Check that the packages of an export are installed.

    Raises:
        ModuleNotFoundError: one is not.
    """
    for name in ("torch", "onnxscript"):
        try:
            __import__(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            message = f'this needs {name}, which is not installed: run pip install "candle-compiler[export]"'
            raise ModuleNotFoundError(message, name=name) from None


@contextmanager
def logging_hidden() -> Iterator[None]:
    """Hide PyTorch's log messages, because its exception holds the error. TORCH_LOGS shows them again."""
    loggers = [logging.getLogger(name) for name in ("torch", "onnxscript")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"(torch|onnxscript|copyreg|contextlib|compiler)\b")
        try:
            for logger in loggers:
                logger.setLevel(logging.CRITICAL)
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def onnx_program(program: torch.export.ExportedProgram, title: str) -> torch.onnx.ONNXProgram:
    """Translates an exported program to ONNX. `title` names the program in errors. The program stays as it is.

    Raises:
        ModuleNotFoundError: onnxscript is not installed.
        ExportError: PyTorch cannot translate the program, or the program changes buffers or inputs, or returns numbers.
    """
    require_torch()
    _refuse_numbers(program, title)
    with logging_hidden():
        translated = _translated(title, None, program, optimize=False)
    _refuse_changes(translated, title)
    return translated


def _refuse_numbers(program: torch.export.ExportedProgram, title: str) -> None:
    """Refuse a program that returns numbers of Python, which PyTorch cannot translate.

    Raises:
        ExportError: the program does so.
    """
    given = (getattr(spec.arg, "value", None) for spec in program.graph_signature.output_specs)
    number = next((value for value in given if value is not None), None)
    if number is not None:
        raise ExportError(
            f"{title} returns {number!r}, and a plan returns tensors\n  help: return torch.tensor({number!r})"
        )


_CHANGED = {"BUFFER_MUTATION": "buffer", "PARAMETER_MUTATION": "parameter", "USER_INPUT_MUTATION": "input"}
"""The kinds of results that are new values of a buffer, a parameter or an input. The exporter drops such results."""


def _refuse_changes(translated: torch.onnx.ONNXProgram, title: str) -> None:
    """Refuse a program that changes buffers, parameters or inputs: a plan has only outputs.

    Raises:
        ExportError: the program does so.
    """
    assert translated.exported_program is not None  # as always with dynamo=True
    changed: dict[str, list[str]] = {}
    for spec in translated.exported_program.graph_signature.output_specs:
        if spec.kind.name in _CHANGED:
            changed.setdefault(_CHANGED[spec.kind.name], []).append(repr(spec.target))
    if changed:
        said = " and ".join(f"the {kind}{'s' * (len(names) > 1)} {_listed(names)}" for kind, names in changed.items())
        advice = "return the new values as outputs, and pass them as inputs of the next run"
        raise ExportError(f"{title} changes {said}, but a plan changes nothing\n  help: {advice}")


def _listed(names: Sequence[str]) -> str:
    """The names as in a sentence."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def by_dynamo(request: Request, path: Path, shapes: Any, axes: Mapping[int, Mapping[int, str]]) -> Exported:
    """Write the model of a module. `shapes` has the dims that may vary in PyTorch's format, and `axes` their names.

    Raises:
        ExportError: PyTorch cannot export the module.
    """
    program = _program(request, shapes)
    if request.outputs is not None:
        name_outputs(program.model, request.outputs)
    for node in program.model.graph.all_nodes():
        if _STACK_TRACE in node.metadata_props:
            node.metadata_props[_STACK_TRACE] = relative_trace(node.metadata_props[_STACK_TRACE], Path.cwd())
    program.save(str(path))
    graph, inner = program.model.graph, program.exported_program
    assert inner is not None  # as always with dynamo=True
    names = {value.name for value in graph.inputs}
    signature = inner.graph_signature
    arguments = [spec.arg.name for spec in signature.input_specs if spec.kind.name == "USER_INPUT"]
    results = [
        spec.arg.name
        for spec in signature.output_specs
        if spec.kind.name == "USER_OUTPUT" and not hasattr(spec.arg, "value")  # a constant, which ONNX lacks
    ]
    inputs = tuple(name if name in names else None for name in arguments)
    outputs = tuple(str(value.name) for value in graph.outputs)
    return Exported(path, request, inputs, outputs, axes, tuple(results), inner)


def _program(request: Request, shapes: Any) -> torch.onnx.ONNXProgram:
    import torch

    program = _translated(
        request.title,
        request,
        request.module,
        tuple(request.args),
        kwargs=dict(request.kwargs),
        dynamic_shapes=shapes,
        opset_version=request.opset,
        optimize=request.optimize,
    )
    nodes = list(program.model.graph.all_nodes())
    if request.opset is not None and (
        program.model.opset_imports.get("") != request.opset
        or (nodes and not any(node.metadata_props for node in nodes))
    ):
        raise ExportError(f"PyTorch {torch.__version__} cannot write {request.title} in opset {request.opset}")
    return program


def _translated(title: str, request: Request | None, *arguments: Any, **options: Any) -> torch.onnx.ONNXProgram:
    import torch

    from compiler.frontend.translations import translation_table

    table: dict[Any, Callable[..., Any]] = {**translation_table(), **((request and request.translations) or {})}
    try:
        program = torch.onnx.export(*arguments, dynamo=True, verbose=False, custom_translation_table=table, **options)
    except Exception as error:
        raise refusal(title, reason_of(error, request and request.module)) from error
    assert program is not None  # as always with dynamo=True
    separate_outputs(program.model)
    return program
