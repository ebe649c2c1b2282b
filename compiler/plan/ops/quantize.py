"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import DType


class DequantizeLinear(Op):
    """`Y = (X − zero)·scale`, with `scale` and `zero` as in [`QuantizeLinear`]."""

    axis: int
    """The axis of the scales; a negative one counts from the end."""

    block: int
    """The number of neighbors along `axis` that share a scale; 0 if the scales are not blocked."""

    to: DType
    """The type of the result, a floating-point type."""


class DynamicQuantizeLinear(Op):
    """Quantizes `X: float32` to `Y: uint8`, with `scale: float32 []` and `zero: uint8 []` such that zero and every
    element are in range.
    """


class QuantizeLinear(Op):
    """`Y = saturate(round(X ÷ scale) + zero)`, with ties to even. If `Y` is a small float, it is the one nearest
    to `X ÷ scale + zero`.
    """

    axis: int
    """The axis of the scales; a negative one counts from the end."""

    block: int
    """The number of neighbors along `axis` that share a scale; 0 if the scales are not blocked."""

    precision: DType
    """The type to whose precision `X ÷ scale` is rounded."""

    saturate: bool
    """For 8-bit floats: whether a number that is too large becomes the largest number."""

    to: DType
    """The type of the result."""
