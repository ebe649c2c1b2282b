"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class Flatten(Op):
    """`Y [Π X[..axis], Π X[axis..]] = X`. Source: [ONNX
    Flatten](https://onnx.ai/onnx/operators/onnx__Flatten.html).
    """

    axis: int
    """The first axis of the second dimension, from 0 to the rank; a negative one counts from the end."""


class Reshape(Op):
    """`Y = X` with the dimensions in input 1, `shape: int64 [rank]`. A `-1` stands for the size that the other
    dimensions leave. A `0` stands for the dimension of `X` at the same position, or, with `allow_zero`, for
    zero.
    """

    allow_zero: bool
    """Whether a 0 in the shape means a dimension of size 0."""


class Squeeze(Op):
    """`Y = X` without some dimensions of size 1. `axes` lists these dimensions, or otherwise input 1, `axes: int64
    [n]`. If both are absent, the op drops all dimensions of size 1. Source: [ONNX
    Squeeze](https://onnx.ai/onnx/operators/onnx__Squeeze.html).
    """

    axes: list[int] | None = None
    """The dimensions to drop; a negative one counts from the end."""


class Unsqueeze(Op):
    """`Y = X` with new dimensions of size 1. `axes`, or otherwise input 1, `axes: int64 [n]`, gives their
    positions in `Y`. Source: [ONNX Unsqueeze](https://onnx.ai/onnx/operators/onnx__Unsqueeze.html).
    """

    axes: list[int] | None = None
    """The positions of the new dimensions in the result; a negative one counts from the end."""
