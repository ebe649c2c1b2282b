"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyPadding


class AveragePool(Op):
    """The mean of each window. X `[N, C, W]` or `[N, C, H, W]`; Y as X, with the numbers of windows as spatial
    sizes.
    """

    count_padding: bool
    """Whether padding counts as zeros. Elements beyond the padding never count."""

    window: PoolWindow
    """The window."""


class LpPool(Op):
    """`(Σ |x|ᵖ)^(1/p)` of each window. X `[N, C, W]` or `[N, C, H, W]`; Y as X, with the numbers of windows as
    spatial sizes.
    """

    p: int
    """The exponent, at least 1."""

    window: PoolWindow
    """The window."""


class MaxPool(Op):
    """The largest element of each window; padding is never the largest."""

    column_major: bool
    """Whether the indices count the elements of an image column by column."""

    window: PoolWindow
    """The window."""


class PoolWindow(Struct):
    """The window of a pooling op, with a number for each of the one or two spatial axes."""

    ceil: bool
    """Whether the last window may extend past the padding. It must begin inside the input or the padding before
    it.
    """

    dilations: list[int]
    """The dilations: the distances between the elements of a window."""

    kernel: list[int]
    """The sizes of a window."""

    padding: AnyPadding
    """The padding of the input."""

    strides: list[int]
    """The strides of the window."""
