"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyPadding
    from compiler.plan.ops.program import Program


class ConvTranspose(Op):
    """`Y[n, o, y·s + i·d − before, x·s + j·d − before] += W[c, o, i, j] · X[n, c, y, x]` over the bias `B[o]`,
    then the epilogue.
    """

    dilations: list[int]
    """The step inside the window."""

    groups: int
    """The number of groups."""

    output_padding: list[int]
    """The number of elements to add at the end of the output."""

    pads: AnyPadding
    """The elements to cut off the output."""

    strides: list[int]
    """The step between the outputs of neighboring inputs, on each spatial axis."""

    epilogue: Program | None = None
    """The program that finishes the result."""

    output_shape: list[int] | None = None
    """The spatial sizes of the output, instead of explicit pads."""
