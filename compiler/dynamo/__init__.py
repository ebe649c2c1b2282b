"""The backend of `torch.compile`: `torch.compile(module, backend="candle")`. It needs PyTorch."""

from compiler.dynamo.backend import candle
from compiler.dynamo.refusal import FallbackWarning, RefusedGraph

__all__ = ["FallbackWarning", "RefusedGraph", "candle"]
