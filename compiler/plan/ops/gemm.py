"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import Program


class Gemm(Op):
    """`Y = alpha · A' · B' + beta · C`, then the epilogue. `A'` and `B'` are `A` and `B`, transposed with
    `trans_a` and `trans_b`.
    """

    alpha: float
    """The factor of the product."""

    beta: float
    """The factor of `C`."""

    trans_a: bool
    """Whether `A` is stored transposed."""

    trans_b: bool
    """Whether `B` is stored transposed."""

    epilogue: Program | None = None
    """The program that finishes the result."""
