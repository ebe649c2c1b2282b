"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op, Struct, Variant


class Activation:
    """An activation function."""

    class Affine(Variant):
        """`α·x + β`"""

        first: float
        second: float

    class Elu(Variant):
        """`x` if positive, else `α·(eˣ − 1)`"""

        value: float

    class HardSigmoid(Variant):
        """`max(0, min(1, α·x + β))`"""

        first: float
        second: float

    class LeakyRelu(Variant):
        """`x` if not negative, else `α·x`"""

        value: float

    class ScaledTanh(Variant):
        """`α·tanh(β·x)`"""

        first: float
        second: float

    class ThresholdedRelu(Variant):
        """`x` if `x > α`, else 0"""

        value: float


AnyActivation: TypeAlias = (
    Activation.Affine
    | Activation.Elu
    | Activation.HardSigmoid
    | Activation.LeakyRelu
    | Activation.ScaledTanh
    | Activation.ThresholdedRelu
    | Literal["Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"]
)
"""Any `Activation`."""


class Direction(Struct):
    """A direction of a layer, and its activations. The layer reads its sequences in this direction."""

    activations: list[AnyActivation]
    """The functions f, g and h, as many as the cell has."""

    reversed: bool
    """Whether the layer reads each sequence from its end."""


class Gru(Op):
    """`z, r = f(X·Wᵀ + H·Rᵀ + b)`, `n = g(X·Wᵀ + (r ∘ H)·Rᵀ + b)`, `H = (1 − z) ∘ n + z ∘ H`, step by step, in D
    directions.
    """

    batch_first: bool
    """Whether the batch is the first axis."""

    directions: list[Direction]
    """One or two directions, each of two functions."""

    hidden: int
    """H, the size of the state."""

    linear_before_reset: bool
    """Whether `n = g(X·Wᵀ + r ∘ (H·Rᵀ + b) + b)`."""

    clip: float | None = None
    """The bound of the gates' sums: they are clipped to it on both sides."""


class Lstm(Op):
    """`i, f = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`, `C = f ∘ C + i ∘ g(X·Wᵀ + H·Rᵀ + b)`, `o = f(X·Wᵀ + H·Rᵀ + b + P ∘ C)`,
    `H = o ∘ h(C)`, step by step, in D directions.
    """

    batch_first: bool
    """Whether the batch is the first axis."""

    directions: list[Direction]
    """One or two directions, each of three functions."""

    hidden: int
    """H, the size of the state."""

    input_forget: bool
    """Whether `f = 1 − i`."""

    clip: float | None = None
    """The bound of the gates' sums: they are clipped to it on both sides."""


class Rnn(Op):
    """`H = f(X·Wᵀ + H·Rᵀ + b)`, step by step, in D directions."""

    batch_first: bool
    """Whether the batch is the first axis."""

    directions: list[Direction]
    """One or two directions, each of one function."""

    hidden: int
    """H, the size of the state."""

    clip: float | None = None
    """The bound of the sum: it is clipped to it on both sides."""
