"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Gather(Op):
    """Selects rows of `X` along `axis`, in the order and shape of `indices`: `Y[…, i₀, …, iₖ, …] = X[…,
    indices[i₀, …, iₖ], …]`. A negative index counts from the end.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class GatherElements(Op):
    """Selects an element of `X` for each element of `indices`. The element has the same position, except that the
    index gives its position along `axis`: `Y[i₀, …] = X[i₀, …, indices[i₀, …], …]`. A negative index counts
    from the end.
    """

    axis: int
    """The axis; a negative one counts from the end."""


class GatherNd(Op):
    """Selects a part of `X` for each vector of `indices [.., k]`: `Y[b, i] = X[b, indices[b, i, 0], …, indices[b,
    i, k - 1]]`. `X` and `indices` share the first `batch_dims` dimensions, and the numbers of a vector are
    indices into the `k` dimensions after them.
    """

    batch_dims: int
    """The number of leading dimensions that `X` and `indices` share."""
