"""Graphs that the backend refuses: the error, and the warning before PyTorch runs such a graph."""

from __future__ import annotations

import warnings

from compiler.errors import CompileError, Error

__all__ = ["FallbackWarning", "RefusedGraph", "warn"]


class RefusedGraph(Error):
    """The backend `candle` of `torch.compile` does not run graphs of this kind."""


class FallbackWarning(UserWarning):
    """PyTorch runs a graph, because the backend `candle` of `torch.compile` refuses it."""


def warn(error: Error) -> None:
    """Warns that PyTorch runs a graph, with the reason."""
    advice = 'options={"fallback": False} makes this an error'
    message = f'torch.compile(backend="candle"): PyTorch runs a graph, because {_reason(error)}\n({advice})'
    warnings.warn(message, FallbackWarning, stacklevel=2)


def _reason(error: Error) -> str:
    """The error, or the first of several diagnostics."""
    if not isinstance(error, CompileError):
        return str(error)
    others = len(error.diagnostics) - 1
    more = "" if others < 1 else f"\n(and {others} more error{'s' * (others > 1)})"
    return f"the compiler refuses it:\n{error.diagnostics[0]}{more}"
