"""Local response normalization as one operator in exports: PyTorch's exporters write a 3-D average pooling."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import functional

__all__ = ["NAME", "local_response_as_operator"]

NAME = "candle_compiler::local_response_norm"
"""The operator of PyTorch that stands for the function during an export."""

_FUNCTION = functional.local_response_norm


@torch.library.custom_op(NAME, mutates_args=())  # type: ignore[untyped-decorator]
def _operator(x: torch.Tensor, size: int, alpha: float, beta: float, k: float) -> torch.Tensor:
    return _FUNCTION(x, size, alpha, beta, k)


@_operator.register_fake  # type: ignore[untyped-decorator]
def _(x: torch.Tensor, size: int, alpha: float, beta: float, k: float) -> torch.Tensor:
    return torch.empty_like(x)


def _local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    is_image = input.dim() == 4 and size % 2 == 1  # the TorchScript exporter gets a function for these
    if input.dim() < 3 or (torch.jit.is_tracing() and not is_image):
        return _FUNCTION(input, size, alpha, beta, k)
    return _operator(input, size, float(alpha), float(beta), float(k))


@contextmanager
def local_response_as_operator() -> Iterator[None]:
    """Let `torch.nn.functional.local_response_norm` call the operator for a while."""
    functional.local_response_norm = _local_response_norm
    try:
        yield
    finally:
        functional.local_response_norm = _FUNCTION
