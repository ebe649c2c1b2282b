"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import BinaryFunction


class Binary(Op):
    """`Z = function(X, Y)`, element by element; `X` and `Y` broadcast as NumPy does."""

    function: BinaryFunction
    """The function."""
