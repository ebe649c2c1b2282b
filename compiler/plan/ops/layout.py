"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op


class DepthToSpace(Op):
    """`Y [N, C/b², H·b, W·b]` from `X [N, C, H, W]`: each block of `b²` channels becomes a square of pixels. `Y[n,
    c, h·b + i, w·b + j] = X[n, k, h, w]` with `k = (i·b + j)·C/b² + c`, or, with `channels_first`, `k = (c·b +
    i)·b + j`. Source: [ONNX DepthToSpace](https://onnx.ai/onnx/operators/onnx__DepthToSpace.html).
    """

    block_size: int
    """`b`."""

    channels_first: bool
    """Whether the channels that become the pixels of one channel are adjacent (ONNX's mode `CRD`)."""


class ReverseSequence(Op):
    """`X` with the first `lengths[b]` steps of each batch member `b` in reverse order. Inputs: `X`, whose first
    two axes are the batch and time, or time and the batch; `lengths: int64 [batch]`.
    """

    time_first: bool
    """Whether the first axis is time, and the second one the batch."""


class SpaceToDepth(Op):
    """`Y [N, C·b², H/b, W/b]` from `X [N, C, H, W]`: each square of pixels becomes a block of channels. `Y[n, k,
    h, w] = X[n, c, h·b + i, w·b + j]` with `k = (i·b + j)·C + c`, or, with `channels_first`, `k = (c·b + i)·b +
    j`. Source: [ONNX SpaceToDepth](https://onnx.ai/onnx/operators/onnx__SpaceToDepth.html).
    """

    block_size: int
    """`b`."""

    channels_first: bool
    """Whether the channels made from the pixels of one channel are adjacent (ONNX's mode `CRD`)."""


class Transpose(Op):
    """`Y[i₀, i₁, …] = X[j₀, j₁, …]` with `j[permutation[a]] = i[a]`: dimension `a` of `Y` is dimension
    `permutation[a]` of `X`.
    """

    permutation: list[int] | None = None
    """The order of the axes; absent means reversed."""
