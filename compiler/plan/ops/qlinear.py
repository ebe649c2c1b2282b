"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyPadding


class QLinearConv(Op):
    """`Y = clamp(round((conv(X − x_zero, W − w_zero) + B) · scale) + y_zero, low, high)`, with ties to even.
    Without `y_zero`, `Y = (conv(X − x_zero, W − w_zero) + B) · scale` in `float32`. The padding of `X` is
    `x_zero`.
    """

    dilations: list[int]
    """The step inside the window on each spatial axis."""

    groups: int
    """The number of groups."""

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""

    pads: AnyPadding
    """The padding of the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""


class QLinearMatMul(Op):
    """`Y = clamp(round(((A − a_zero) · (B − b_zero) + C) · scale) + y_zero, low, high)`, with ties to even.
    Without `y_zero`, `Y = ((A − a_zero) · (B − b_zero) + C) · scale` in `float32`.
    """

    high: int
    """The largest code of the result."""

    low: int
    """The smallest code of the result."""
