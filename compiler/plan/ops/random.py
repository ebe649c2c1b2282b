"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import DType


class Multinomial(Op):
    """Draws `samples` classes for each row of `X [B, C]`, which holds unnormalized logarithms of the classes'
    probabilities. The result is `Y [B, samples]`.
    """

    dtype: DType
    """The element type of the classes: `int32` or `int64`."""

    samples: int
    """The number of classes to draw per row."""

    seed: int
    """The seed of the generator."""


class RandomNormal(Op):
    """Normally distributed numbers of mean `mean` and standard deviation `scale`, in the shape of input 0, `shape:
    int64 [rank]`.
    """

    dtype: DType
    """The element type."""

    mean: float
    """The mean."""

    scale: float
    """The standard deviation."""

    seed: int
    """The seed of the generator."""


class RandomUniform(Op):
    """Uniformly distributed numbers from `low` to `high`, in the shape of input 0, `shape: int64 [rank]`."""

    dtype: DType
    """The element type."""

    high: float
    """The upper bound."""

    low: float
    """The lower bound."""

    seed: int
    """The seed of the generator."""
