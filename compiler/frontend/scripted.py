"""Export with PyTorch's older exporter, TorchScript. It runs a module once, and records the operators of this run.

The recorded model keeps what Python decided in this run: branches, the number of steps of loops, and numbers that the
code reads from tensors.
"""

from __future__ import annotations

import re
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch
from torch import nn
from torch.utils import _pytree as pytree

from compiler.frontend.module_state import unchanged
from compiler.frontend.scripted_functions import more_functions
from compiler.frontend.source_lines import is_own, relative_name, scripted_trace

__all__ = ["Recorded", "record"]

_SCOPE = "recorded_module"
_IN_NODE, _IN_WEIGHT = re.compile(rf"^/{_SCOPE}(?=/)"), re.compile(rf"^{_SCOPE}\.")


@dataclass(frozen=True)
class Recorded:
    """A model in ONNX, and the lines of Python whose decisions it keeps."""

    model: ir.Model
    decisions: tuple[str, ...]


class _Flat(nn.Module):  # type: ignore[misc]
    """A module that takes its tensors by position, and returns a tuple of tensors."""

    def __init__(self, module: nn.Module, leaves: list[Any], structure: Any) -> None:
        super().__init__()
        self.add_module(_SCOPE, module)
        self.leaves, self.structure = leaves, structure
        self.names: list[str] = []

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """The tensors of the module's result, in order."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        found, _ = pytree.tree_flatten_with_path(getattr(self, _SCOPE)(*args, **kwargs))
        kept = [(path, leaf) for path, leaf in found if isinstance(leaf, torch.Tensor)]
        self.names = [_output_name(path) for path, _ in kept]
        return tuple(leaf for _, leaf in kept)


def _output_name(path: Sequence[Any]) -> str:
    keys = [
        next((value for at in ("idx", "key", "name") if (value := getattr(each, at, None)) is not None), "")
        for each in path
    ]
    name = "_".join(map(str, keys))
    return name if name and not name[0].isdigit() else "_".join(["output", name]).rstrip("_")


def record(
    module: nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    names: Sequence[str],
    axes: Mapping[int, Mapping[int, str]],
    opset: int | None,
) -> Recorded:
    """Export a module that is in evaluation mode. The module and its arguments stay as they are.

    `names` has a name for each leaf of `(args, kwargs)`. `axes` names dims that may vary: the index of a leaf → axis →
    name. The outputs have the names of the keys, attributes or indices in the module's result.

    Raises:
        Exception: PyTorch cannot export the module. The exception may have any class.
    """
    leaves, structure = pytree.tree_flatten((tuple(args), dict(kwargs)))
    given = [(name, leaf) for name, leaf in zip(names, leaves, strict=True) if isinstance(leaf, torch.Tensor)]
    dynamic = {names[at]: dict(dims) for at, dims in axes.items()}
    flat = _Flat(module, leaves, structure).eval()
    copies = tuple(leaf.detach().clone() for _, leaf in given)
    with (
        tempfile.TemporaryDirectory() as folder,
        unchanged(module),
        _noted() as notes,
        _graphs_hidden(),
        more_functions(),
    ):
        path = Path(folder) / "model.onnx"
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.onnx.export(
                flat, copies, str(path), dynamo=False, verbose=True, opset_version=opset,
                input_names=[name for name, _ in given], dynamic_axes=dynamic,
            )  # fmt: skip
        model = ir.load(path)
        for value in model.graph.initializers.values():  # the folder ends with this block
            if isinstance(value.const_value, ir.ExternalTensor):
                value.const_value = ir.Tensor(value.const_value.numpy().copy(), name=value.name)
    _rename(model, flat.names)
    return Recorded(model, tuple(dict.fromkeys(_decisions(notes))))


@contextmanager
def _noted() -> Iterator[list[warnings.WarningMessage]]:
    """The warnings of the exporter, which says which decisions of Python it cannot record."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


@contextmanager
def _graphs_hidden() -> Iterator[None]:
    """Keep PyTorch from printing its graphs to the standard output, also those of an export that fails."""
    name = "_jit_set_onnx_log_enabled"
    enable: Callable[[bool], None] | None = getattr(torch._C, name, None)
    if enable is None:
        yield
        return
    setattr(torch._C, name, lambda _: None)
    try:
        yield
    finally:
        setattr(torch._C, name, enable)


def _decisions(notes: Sequence[warnings.WarningMessage]) -> Iterator[str]:
    for note in notes:
        is_decision = issubclass(note.category, torch.jit.TracerWarning) and "Converting a tensor to a Python" in str(
            note.message
        )
        if is_decision and is_own(note.filename):
            yield f"{relative_name(note.filename, Path.cwd())}:{note.lineno}"


def _rename(model: ir.Model, outputs: Sequence[str]) -> None:
    """Remove the name of the outer module from names, and the folders of the machine from stack traces."""
    for node in model.graph.all_nodes():
        if node.name:
            node.name = _IN_NODE.sub("", node.name)
        if node.doc_string:
            node.doc_string = scripted_trace(node.doc_string, Path.cwd())
        for value in node.outputs:
            if value.name:
                value.name = _IN_NODE.sub("", value.name)
    initializers = list(model.graph.initializers.values())
    model.graph.initializers.clear()
    for value in initializers:
        value.name = _IN_WEIGHT.sub("", value.name or "")
        model.graph.register_initializer(value)
    taken = {value.name for value in model.graph.inputs}
    if len(outputs) == len(model.graph.outputs):
        for value, name in zip(model.graph.outputs, outputs, strict=True):
            value.name = f"{name}_output" if name in taken else name
