"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import Program


class QuantizedMatMul(Op):
    """`Y[i, j] = (Σₖ (code[i, k] − zero[i]) · W[j, k]) · scales[j] · scale[i]`, then the epilogue. Each row `i` of
    `A` gets codes, a zero point and a scale in every run.
    """

    epilogue: Program | None = None
    """The program that finishes the result."""
