"""The backend of `torch.compile`: `torch.compile(module, backend="candle")`. It needs PyTorch."""

from compiler.frontend.captured import require_torch

require_torch()

from compiler.dynamo.backend import candle  # noqa: E402 (needs PyTorch)
from compiler.dynamo.refusal import FallbackWarning, RefusedGraph  # noqa: E402

__all__ = ["FallbackWarning", "RefusedGraph", "candle"]
