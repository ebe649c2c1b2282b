"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.program import AnyUnaryFunction


class Unary(Op):
    """`Y = function(X)`, element by element; `IsNaN` and `IsInf` give booleans."""

    function: AnyUnaryFunction
    """The function."""
