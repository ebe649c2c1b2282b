"""HardSigmoid: the slope and the offset."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.ir.views.source import Source, V, View

__all__ = ["HardSigmoidView"]


@dataclass(frozen=True)
class HardSigmoidView(View[V]):
    """`HardSigmoid(x) = max(0, min(1, slope · x + offset))`.

    Source: https://onnx.ai/onnx/operators/onnx__HardSigmoid.html
    """

    operators = (("", "HardSigmoid"),)

    slope: float
    offset: float

    @classmethod
    def read(cls, node: Source[V]) -> HardSigmoidView[V]:
        """The view of a HardSigmoid."""
        return cls(node.float("alpha", 0.2), node.float("beta", 0.5))
