"""QuantizeLinear and DequantizeLinear: the axis or blocks of the scales, and the types."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.views.source import Source, V, View

__all__ = ["CODES", "QuantizeView"]

CODES = (ir.DataType.UINT8, ir.DataType.INT8)
"""The types of 8-bit codes."""


@dataclass(frozen=True)
class QuantizeView(View[V]):
    """`QuantizeLinear` and `DequantizeLinear`.

    Sources: https://onnx.ai/onnx/operators/onnx__QuantizeLinear.html,
    https://onnx.ai/onnx/operators/onnx__DequantizeLinear.html
    """

    operators = (("", "QuantizeLinear"), ("", "DequantizeLinear"))

    x: V | None
    scale: V | None
    zero: V | None
    axis: int
    """The axis of the scales, unless there is one scale; the axis of the blocks, if there are blocks."""
    block: int
    """The size of a block; 0 for one scale, or one for each index of the axis."""
    to: str | None
    """The dtype of the result that `output_dtype` names; `None`: that of the zero point or scale."""
    saturate: bool
    """Whether QuantizeLinear converts numbers beyond the largest float8 to this number. No effect on integers."""
    precision: str | None
    """The dtype of the division in QuantizeLinear; `None` if it is the dtype of the scale."""

    @classmethod
    def read(cls, node: Source[V]) -> QuantizeView[V]:
        """The view of a node."""
        divides = node.op_type == "QuantizeLinear"
        return cls(
            x=node.optional(0),
            scale=node.optional(1),
            zero=node.optional(2),
            axis=node.int("axis", 1),
            block=node.int("block_size", 0),
            to=_dtype(node, "output_dtype"),
            saturate=node.flag("saturate", True) if divides else True,
            precision=_dtype(node, "precision") if divides else None,
        )


def _dtype(node: Source[V], name: str) -> str | None:
    """The dtype that an attribute names; `None` if it is absent or 0."""
    return node.dtype_attr(name) if node.int(name, 0) else None
