"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyPadding


class ConvInteger(Op):
    """`Y = conv(X − x_zero, W − w_zero) + B` in `int32`. The padding of `X` is `x_zero`."""

    dilations: list[int]
    """The step inside the window on each spatial axis."""

    groups: int
    """The number of groups."""

    pads: AnyPadding
    """The padding of the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""


class MatMulInteger(Op):
    """`Y = (A − a_zero) · (B − b_zero)` in `int32`, with matrices and batches as in `MatMul`."""


class Requantize(Op):
    """`Y = saturate(round(X · a_scale · b_scale ÷ y_scale) + y_zero)`, with ties to even. The factors are combined
    first, in `float32`.
    """
