"""Softmax, LogSoftmax, Hardmax: the axis."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["SoftmaxView"]


@dataclass(frozen=True)
class SoftmaxView(View[V]):
    """`Softmax`, `LogSoftmax`, `Hardmax`: before version 13, `axis` is the first of the axes, which become one.

    Source: https://onnx.ai/onnx/operators/onnx__Softmax.html
    """

    operators = (("", "Softmax"), ("", "LogSoftmax"), ("", "Hardmax"))

    given: int | None
    """The attribute; `None`: 1 before version 13, and -1 from version 13 on."""

    @classmethod
    def read(cls, node: Source[V]) -> SoftmaxView[V]:
        """The view of a node."""
        return cls(node.int("axis", None))

    def axis(self, version: int) -> int:
        """The axis of this version of the operator."""
        return self.given if self.given is not None else -1 if version >= 13 else 1
