"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class AppendRows(Op):
    """The first rows of a cache, then new rows, then zeros: `Y[b, …, i, :]` is `cache[b, …, i, :]` for `i < n[b]`,
    `new[b, …, i − n[b], :]` for the next `S`, and zero for the others. Rows between the end of the cache and
    `n[b]` are zero too.
    """
