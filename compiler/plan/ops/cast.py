"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import Literal, TypeAlias

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import DType


class BitCast(Op):
    """`Y` has the bits of `X` as elements of the type `to`, which has the same width."""

    to: DType
    """The type of the result."""


class Cast(Op):
    """`Y = X`, with each element converted to the type `to`."""

    round: Round
    """The rounding for `float8_e8m0fnu`."""

    saturate: bool
    """Whether a number too large for an 8-bit float becomes its largest number instead of an infinity or NaN."""

    to: DType
    """The type of the result."""


Round: TypeAlias = Literal["Up", "Down", "Nearest"]
"""The rounding of a number to a power of two."""
