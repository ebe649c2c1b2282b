"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class PairwiseCoupling(Op):
    """The probabilities `Y [N, classes]` of classes, given that one of two classes is right: `R [N, P]`, for the
    pairs (0, 1), (0, 2) …, (1, 2) …, is the probability of the first one of the pair. float32.
    """

    classes: int
    """The number of classes."""


class SquaredDistances(Op):
    """`D[n, m] = Σₖ (X[n, k] − P[m, k])²`, for `X [N, K]` and `P [M, K]` of float32."""
