"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class TfIdfVectorizer(Op):
    """Counts each n-gram of a pool in each row of `X [C]` or `[N, C]`: `Y: float32 [columns]` or `[N, columns]`."""

    columns: int
    """The number of columns."""

    longest: int
    """The maximum number of elements of an n-gram that counts."""

    max_skips: int
    """The maximum number of elements to skip between two elements of an n-gram."""

    shortest: int
    """The minimum number of elements of an n-gram that counts."""
