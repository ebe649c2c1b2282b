"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op


class Attention(Op):
    """`Y = softmax(softcap(Q · Kᵀ · scale) + mask) · V`."""

    guard: AttentionGuard
    """The weights that are set to 0 after softmax."""

    is_causal: bool
    """Whether a query sees only keys up to its position."""

    scores: AttentionScores
    """The content of the fourth output."""

    heads: int | None = None
    """The number of heads of Q; null if Q has a dimension for them."""

    kv_heads: int | None = None
    """The number of heads of K and V; null if they have a dimension for them."""

    left_window: int | None = None
    """The number of keys before its position that a query sees; null means all."""

    right_window: int | None = None
    """The number of keys after its position that a query sees; null means all."""

    scale: float | None = None
    """The factor of the products; null means `1 / √D`."""

    softcap: float | None = None
    """The cap c in `c · tanh(score / c)`; null means no cap."""


AttentionGuard: TypeAlias = Literal["Unseeing", "Nothing", "Undefined"]
"""Which weights of [`Attention`] are set to 0 after softmax."""


AttentionScores: TypeAlias = Literal["Product", "Capped", "Masked", "Softmax"]
"""The scores in the fourth output of [`Attention`]."""
