"""Trilu: the triangle of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["TriangleView"]


@dataclass(frozen=True)
class TriangleView(View[V]):
    """`Trilu`: the elements of `x` on one side of a diagonal, and zeros elsewhere.

    Source: https://onnx.ai/onnx/operators/onnx__Trilu.html
    """

    operators = (("", "Trilu"),)

    x: V | None
    diagonal: V | None
    """The number of the diagonal, which is part of the triangle; `None` for the main diagonal."""
    is_upper: bool

    @classmethod
    def read(cls, node: Source[V]) -> TriangleView[V]:
        """The view of a Trilu."""
        return cls(node.optional(0), node.optional(1), node.flag("upper", True))
