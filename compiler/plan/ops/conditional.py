"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Clip(Op):
    """`Y = min(max(X, low), high)`. Inputs 1 and 2 are `low` and `high`, of one element each; an absent one is no
    bound. If `low > high`, every element becomes `high`. NaN stays NaN.
    """


class Where(Op):
    """`Z = X if C else Y`, element by element; `C: bool`, `X` and `Y` broadcast as NumPy does."""
