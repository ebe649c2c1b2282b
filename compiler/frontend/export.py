"""Export of PyTorch modules to ONNX: with PyTorch's present exporter, or else with its older one, TorchScript."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from compiler.frontend.captured import by_dynamo, logging_hidden, require_torch
from compiler.frontend.export_arguments import bound, leaf_names, named_axes, shapes_of
from compiler.frontend.export_reasons import Reason, reason_of
from compiler.frontend.export_request import Exported, Exporter, ExportError, Request, refusal
from compiler.frontend.module_state import evaluating
from compiler.frontend.output_names import name_outputs
from compiler.validate import validate_instance

if TYPE_CHECKING:
    import onnx_ir

__all__ = ["write_model"]

_OPSETS_OF_DYNAMO = 18
"""The oldest opset of the present exporter. For older ones, it uses a converter that drops the origins of nodes."""
_OPSETS_OF_TORCHSCRIPT = range(9, 21)
_LARGEST = 1 << 30
"""The most bytes of weights in the file of a model."""
_SHOWN = 3

Axes = Mapping[int, Mapping[int, str]]


def write_model(request: Request, path: str | Path) -> Exported:
    """Write the ONNX file of a module without a check. `compiler.export` documents the errors."""
    require_torch()
    from compiler.frontend.local_response import local_response_as_operator

    if request.exporter not in get_args(Exporter):
        known = ", ".join(map(repr, get_args(Exporter)))
        raise ValueError(f"exporter: expected one of {known}, found {request.exporter!r}")
    given = bound(request.module, request.args, request.kwargs)
    shapes = shapes_of(request.module, request.args, request.kwargs, request.dynamic, request.dynamic_shapes)
    if request.translations is not None:
        table = "custom_translation_table"
        validate_instance(table, request.translations, Mapping, "a dict of functions by operator")
    if request.opset is not None:
        _check_opset(request.opset, request.exporter)
    axes = _by_leaf(request, named_axes(given, shapes))
    with evaluating(request.module), local_response_as_operator(), logging_hidden():
        if request.exporter == "torchscript":
            return _by_torchscript(request, Path(path), axes, None)
        try:
            return by_dynamo(request, Path(path), shapes, axes)
        except ExportError as error:
            is_old = request.opset is None or request.opset in _OPSETS_OF_TORCHSCRIPT
            if error.reason is None or request.exporter == "dynamo" or not is_old:
                raise
            refused, reason = error, error.reason
        try:
            return _by_torchscript(request, Path(path), axes, reason)
        except ExportError as error:
            raise refusal(request.title, reason, other=str(error.reason)) from refused.__cause__


def _check_opset(opset: int, exporter: Exporter) -> None:
    import onnx

    oldest, newest = _OPSETS_OF_DYNAMO, onnx.defs.onnx_opset_version()
    if exporter == "torchscript":
        oldest, newest = _OPSETS_OF_TORCHSCRIPT[0], _OPSETS_OF_TORCHSCRIPT[-1]
    if not oldest <= opset <= newest:
        last = (
            "the newest that the TorchScript exporter writes"
            if exporter == "torchscript"
            else "the newest that onnx knows"
        )
        raise ValueError(f"opset {opset}: choose one from {oldest} to {newest}, {last}")


def _by_leaf(request: Request, axes: Axes) -> Axes:
    """`axes` by the index of a leaf instead of the id of a tensor."""
    from torch.utils._pytree import tree_leaves

    leaves = tree_leaves((tuple(request.args), dict(request.kwargs)))
    return {at: axes[id(leaf)] for at, leaf in enumerate(leaves) if id(leaf) in axes}


def _by_torchscript(request: Request, path: Path, axes: Axes, reason: Reason | None) -> Exported:
    """Write the model with the older exporter. `reason` says why the present exporter refused the module.

    Raises:
        ExportError: PyTorch cannot export the module.
    """
    from compiler.frontend.scripted import record

    names = leaf_names(request.module, request.args, request.kwargs)
    try:
        recorded = record(request.module, request.args, request.kwargs, names, axes, request.opset)
    except Exception as error:  # PyTorch's exceptions have many classes
        raise refusal(request.title, reason_of(error, request.module)) from error
    if request.outputs is not None:
        name_outputs(recorded.model, request.outputs)
    _save(recorded.model, path)
    inputs = {value.name for value in recorded.model.graph.inputs}
    return Exported(
        path,
        request,
        tuple(name if name in inputs else None for name in names),
        tuple(str(value.name) for value in recorded.model.graph.outputs),
        axes,
        notes=tuple(_notes(reason, recorded.decisions)),
        cure=reason.cure if reason is not None and recorded.decisions else "",
    )


def _save(model: onnx_ir.Model, path: Path) -> None:
    import onnx_ir

    weights = [value.const_value for value in model.graph.initializers.values()]
    is_large = sum(weight.nbytes for weight in weights if weight is not None) > _LARGEST
    onnx_ir.save(model, path, external_data=f"{path.name}.data" if is_large else None)


def _notes(reason: Reason | None, decisions: tuple[str, ...]) -> list[Any]:
    """The warnings for a model of the TorchScript exporter."""
    notes = []
    if reason is not None:
        notes.append(f"the TorchScript exporter wrote the model, because the present exporter refuses it: {reason}")
    if decisions:
        more = f" and {len(decisions) - _SHOWN} more lines" if len(decisions) > _SHOWN else ""
        places = ", ".join(decisions[:_SHOWN])
        notes.append(f"the model keeps what Python decided for these arguments at {places}{more}")
    return notes
