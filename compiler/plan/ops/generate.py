"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import DType


class EyeLike(Op):
    """A matrix of the shape of `X [M, N]` with ones on a diagonal and zeros elsewhere: `Y[i, i + k] = 1`."""

    dtype: DType
    """The element type of the result."""

    k: int
    """The diagonal: 0 is the main one, and a positive number is above it."""


class Fill(Op):
    """A tensor whose elements all equal input 1, one element of any dtype. Input 0 is its shape, `shape: int64
    [rank]`.
    """


class OneHot(Op):
    """`Y[…, d, …] = on` if `indices[…] = d`, else `off`; the new axis has size `depth`. Inputs: `indices`, `depth`
    (one element), `values [2]` = `off, on` of any dtype. Negative indices count from `depth`. An index outside
    `-depth .. depth` gives only `off`. Fractions are truncated.
    """

    axis: int
    """The position of the new axis in the result; a negative one counts from the end."""


class Range(Op):
    """`Y[i] = start + i·delta` for `0 ≤ i < max(⌈(limit - start) / delta⌉, 0)`. Inputs: `start`, `limit` and
    `delta`, of one element each. float16 and bfloat16 are computed in float32.
    """
