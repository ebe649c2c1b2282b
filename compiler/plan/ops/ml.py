"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class LabelEncoder(Op):
    """Replaces each element of `X` by the value of its key: `Y[i] = values[k]` for the last `k` with `keys[k] =
    X[i]`, or the default if there is none. A NaN equals a NaN.
    """
