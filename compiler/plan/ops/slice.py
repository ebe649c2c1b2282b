"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Slice(Op):
    """`Y = X[start : end : step, …]`, with negative and too large bounds as in NumPy. Inputs: `X`, `starts: [n]`,
    `ends: [n]`, `axes: [n]` (absent: the first `n`) and `steps: [n]` (absent: 1).
    """
