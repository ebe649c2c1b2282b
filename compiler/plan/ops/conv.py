"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyPadding
    from compiler.plan.ops.program import Program


class Conv(Op):
    """`Y[n, o, y, x] = B[o] + Σ W[o, c, i, j] · X[n, c, y·s + i·d − before, x·s + j·d − before]`, then the
    epilogue.
    """

    dilations: list[int]
    """The step inside the window on each spatial axis."""

    groups: int
    """The number of groups."""

    pads: AnyPadding
    """The padding of the input."""

    strides: list[int]
    """The step of the window on each spatial axis."""

    epilogue: Program | None = None
    """The program that finishes the result."""
