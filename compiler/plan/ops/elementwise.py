"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import Program


class Elementwise(Op):
    """The result of a program on `float32` inputs, which broadcast to one shape as NumPy does."""

    program: Program
    """The program for each element; it begins with `Load`."""
