"""Shape: the axes whose sizes it returns."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["ShapeView"]


@dataclass(frozen=True)
class ShapeView(View[V]):
    """`Shape`: the sizes of the axes from `start` up to `end`; negative numbers count from the last axis.

    Source: https://onnx.ai/onnx/operators/onnx__Shape.html
    """

    operators = (("", "Shape"),)

    x: V | None
    start: int
    end: int | None
    """`None`: after the last axis."""

    @classmethod
    def read(cls, node: Source[V]) -> ShapeView[V]:
        """The view of a Shape."""
        return cls(node.optional(0), node.int("start", 0), node.int("end", None))
