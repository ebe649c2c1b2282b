"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Einsum(Op):
    """The product of the inputs' elements, summed over the axes that the equation's result does not name."""

    equation: str
    """The equation."""
