"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Det(Op):
    """`Y [..]`, the determinant of each matrix of the floating-point tensor `X [.., M, M]`. It is computed in
    float64 by elimination with row pivots.
    """
