"""The arguments of an export, the exported model, and the error of a refused export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from compiler.errors import Error

if TYPE_CHECKING:
    import torch

    from compiler.frontend.export_arguments import Dims
    from compiler.frontend.export_reasons import Reason

__all__ = ["ExportError", "Exported", "Exporter", "Request", "refusal"]

Exporter = Literal["auto", "dynamo", "torchscript"]
"""PyTorch's exporters; `auto` is the first one that succeeds."""


class ExportError(Error):
    """PyTorch cannot export a module, or the exported model computes another function.

    If PyTorch refused the module, the exception's `__cause__` is PyTorch's own exception.
    """

    reason: Reason | None = None
    """The reason of a refusal, with the module and line of Python that caused it."""


def refusal(title: str, reason: Reason, *, other: str = "") -> ExportError:
    """The error for a module that PyTorch refuses. `other` is the reason of the second exporter."""
    second = f"\n  the TorchScript exporter: {other}" if other else ""
    advice = f"\n  help: {reason.cure}" if reason.cure else ""
    error = ExportError(f"PyTorch cannot export {title}: {reason}{second}{advice}")
    error.reason = reason
    return error


@dataclass(frozen=True)
class Request:
    """What to export, and how. `compiler.export` documents the fields."""

    module: torch.nn.Module
    args: Sequence[Any]
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    dynamic: Dims | None = None
    dynamic_shapes: Any = None
    outputs: Sequence[str] | None = None
    opset: int | None = None
    optimize: bool = False
    exporter: Exporter = "auto"
    translations: Mapping[Any, Callable[..., Any]] | None = None

    @property
    def title(self) -> str:
        """The name of the module's class."""
        return type(self.module).__name__


@dataclass(frozen=True)
class Exported:
    """A written model, and how the module's arguments and results correspond to its inputs and outputs."""

    path: Path
    request: Request
    inputs: tuple[str | None, ...]
    """For each leaf of `(args, kwargs)`, the name of the model's input; `None` for a constant."""
    outputs: tuple[str, ...]
    axes: Mapping[int, Mapping[int, str]]
    """The dims that may vary: the index of a leaf → axis → name."""
    results: tuple[str, ...] = ()
    """The names that the outputs have in `program`."""
    program: torch.export.ExportedProgram | None = None
    """PyTorch's graph. Its nodes have the names of the model's values. `None` from the TorchScript exporter."""
    notes: tuple[str, ...] = ()
    """The warnings of the TorchScript exporter."""
    cure: str = ""
    """What to do about the decisions of Python that a recorded model keeps; empty without any."""
