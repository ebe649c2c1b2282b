"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import Program


class MatMul(Op):
    """`Y = A · B`, then the epilogue. The last two dimensions are matrices, and the dimensions before them
    broadcast. A vector is a row on the left and a column on the right; the result lacks its dimension.
    """

    trans_a: bool
    """Whether the matrices of `A` are stored transposed."""

    trans_b: bool
    """Whether the matrices of `B` are stored transposed."""

    epilogue: Program | None = None
    """The program that finishes the result."""
