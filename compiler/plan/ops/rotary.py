"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class RotaryEmbedding(Op):
    """Rotates pairs of elements of each head's vector by the angle of its position: `y₁ = cos · x₁ − sin · x₂`,
    `y₂ = sin · x₁ + cos · x₂`.
    """

    interleaved: bool
    """Whether a pair is two adjacent elements instead of elements i and i + R / 2."""

    heads: int | None = None
    """The number of heads; null if X has a dimension for them."""

    rotary_dim: int | None = None
    """R, the number of rotated elements; null means all elements of a vector."""
