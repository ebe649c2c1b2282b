"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


Combination: TypeAlias = Literal["none", "add", "mul", "min", "max"]
"""How an update combines with the present element."""


class ScatterElements(Op):
    """`X` with updates at the positions that the indices give: `Y[i₀, …, indices[i₀, …], …] ⟵ updates[i₀, …]` for
    each position `i₀, …` of `indices`, with the index on `axis`. A negative index counts from the end. Updates
    of the same position apply in order. Inputs: `X`, `indices`, `updates`.
    """

    axis: int
    """The axis; a negative one counts from the end."""

    reduction: Combination
    """How an update combines with the present element."""


class ScatterNd(Op):
    """`X` with updates of the parts that the vectors of `indices [.., k]` select: `Y[indices[i, 0], …, indices[i,
    k - 1]] ⟵ updates[i]`. Inputs: `X`, `indices`, `updates`. A negative index counts from the end. Updates of
    the same part apply in order.
    """

    reduction: Combination
    """How an update combines with the present element."""


class TensorScatter(Op):
    """A cache with new rows written into it: `Y[b, …, w[b] + s, …] = update[b, …, s, …]`, with the position on
    `axis`. With `circular`, the position is taken modulo the size of the cache. Inputs: `cache [B, …, S, …]`,
    `update [B, …, s, …]`, `w: [B]` (absent: zeros).
    """

    axis: int
    """The axis of rows, not the first one; a negative axis counts from the end."""

    circular: bool
    """Whether rows beyond the end continue at the start."""
