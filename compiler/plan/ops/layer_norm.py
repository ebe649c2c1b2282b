"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class LayerNorm(Op):
    """`Y = (X − Mean) · InvStdDev · Scale + B` over the axes from `axis` to the last, with `InvStdDev = 1 /
    √(variance + ε)`.
    """

    axis: int
    """The first normalized axis; a negative one counts from the end."""

    epsilon: float
    """ε"""


class RmsNorm(Op):
    """`Y = X / √(mean of X² + ε) · scale` over the axes from `axis` to the last. X `[D0, …]`; scale broadcasts to
    X; Y has the dtype of scale.
    """

    axis: int
    """The first normalized axis; a negative one counts from the end."""

    epsilon: float
    """ε"""
