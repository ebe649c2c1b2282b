"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import Program


class RoundedMatMul(Op):
    """`Y = round(A) · W`, then the epilogue. `round` rounds each number to the type of `W`: to nearest, ties to
    even. Numbers below `2⁻¹²⁶` in magnitude may count as zero. The sums are `float32`.
    """

    trans_w: bool
    """Whether `W` is stored transposed."""

    epilogue: Program | None = None
    """The program that finishes the result."""
