"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class BatchNorm(Op):
    """`Y = (X − mean) / √(var + ε) · scale + B`. X `[N, C, …]` with at most two spatial dimensions; scale, B,
    mean, var `[C]`, or, to normalize each activation on its own, the dimensions of X after the batch; Y as X.
    """

    epsilon: float
    """ε"""


class GroupNorm(Op):
    """`Y = (X − mean) / √(variance + ε) · scale + bias`, with mean and variance over groups of neighboring
    channels. X `[N, C, …]`; scale, bias `[C]` or with one element per group; Y as X.
    """

    epsilon: float
    """ε"""

    groups: int
    """The number of groups, which divides C."""


class InstanceNorm(Op):
    """`Y = (X − mean) / √(variance + ε) · scale + B`, with mean and variance over the spatial dimensions. X `[N,
    C, …]` with at most two spatial dimensions; scale, B `[C]`; Y as X.
    """

    epsilon: float
    """ε"""


class Lrn(Op):
    """`Y = X / (bias + alpha / size · Σ X²)^beta`, with the sum over the `size` channels around each channel:
    ⌊(size−1)/2⌋ before and ⌈(size−1)/2⌉ after it. X `[N, C, …]`; Y as X.
    """

    alpha: float
    """The factor."""

    beta: float
    """The exponent."""

    bias: float
    """The number to add to the sum."""

    size: int
    """The number of channels in the sum, not 0."""
