"""Local response normalization, which an export has as an operator of its own."""

from __future__ import annotations

from typing import Any

from onnxscript import opset18 as op

from compiler.frontend.translations.parts import axes

__all__ = ["TRANSLATIONS"]


def local_response_norm(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """`x / (k + alpha · mean of squares)^beta`. The mean is over the channels near each one, and `x` is `[N, C, …]`.

    If `size` is even, PyTorch's windows have one more channel before the middle, and those of ONNX one more after it.
    """
    rank = len(x.shape)
    image = x if rank == 4 else op.Reshape(x, axes([0, 0, 1, -1]))
    y = _reversed(op.LRN(_reversed(image, size), alpha=alpha, beta=beta, bias=k, size=size), size)
    return y if rank == 4 else op.Reshape(y, op.Shape(x))


def _reversed(image: Any, size: int) -> Any:
    """The channels in reverse order, if the size is even."""
    return (
        op.Slice(image, axes([-1]), axes([-(1 << 62)]), axes([1]), axes([-1])) if size % 2 == 0 else op.Identity(image)
    )


TRANSLATIONS = {"candle_compiler::local_response_norm": local_response_norm}
