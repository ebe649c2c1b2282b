"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import Program


class MatMulNBits(Op):
    """`Y = A · Wᵀ`, then the epilogue. A code is an integer of `bits` bits. Each row of `W [N, K]` consists of
    blocks of codes, and the last block may be partial. An element of `W` is `(code − zero) · scale`, with the
    zero point and the scale of its block.
    """

    bits: int
    """The bits of a code: 2, 4 or 8."""

    block: int
    """The codes of a block, a multiple of 16."""

    k: int
    """The number of columns of `W`, at least 1."""

    n: int
    """The number of rows of `W`, at least 1."""

    rounds_a: bool
    """Whether a kernel may round `A` to 8 bits, where this is faster. Each block of a row, or at most 256 elements
    of a longer block, then gets a scale: the largest magnitude, divided by 127. An element becomes the nearest
    multiple of the scale.
    """

    epilogue: Program | None = None
    """The program that finishes the result."""
