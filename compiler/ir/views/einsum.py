"""Einsum: the equation."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["EinsumView"]


@dataclass(frozen=True)
class EinsumView(View[V]):
    """`Einsum`.

    Source: https://onnx.ai/onnx/operators/onnx__Einsum.html
    """

    operators = (("", "Einsum"),)

    equation: str
    """The letters of the inputs' axes, and those of the result, as in `ij,jk->ik`."""

    @classmethod
    def read(cls, node: Source[V]) -> EinsumView[V]:
        """The view of an Einsum."""
        return cls(node.string("equation"))
