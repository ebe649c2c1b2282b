"""The removal of an axis, which PyTorch's own translation removes even if its size is not 1."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18 as op

from compiler.frontend.translations.parts import Untranslatable, axes

__all__ = ["TRANSLATIONS"]


def squeeze(self: Any, dim: int) -> Any:
    """The tensor without an axis of size 1; the same tensor if the axis has another size.

    `torch.export` captures a size that may vary only if it is not 1.
    """
    if self.shape is None:
        raise Untranslatable("the shape of the tensor must be known")
    return op.Squeeze(self, axes([dim])) if self.shape and self.shape[dim] == 1 else op.Identity(self)


TRANSLATIONS = {"aten::squeeze.dim": squeeze}
