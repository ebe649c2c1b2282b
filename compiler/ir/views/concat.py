"""Concat: the axis of the concatenation."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["ConcatView"]


@dataclass(frozen=True)
class ConcatView(View[V]):
    """`Concat`: its inputs, joined along `axis`. `raise_first_versions` writes the default of version 1.

    Source: https://onnx.ai/onnx/operators/onnx__Concat.html
    """

    operators = (("", "Concat"),)

    axis: int

    @classmethod
    def read(cls, node: Source[V]) -> ConcatView[V]:
        """The view of a Concat."""
        return cls(node.int("axis"))
