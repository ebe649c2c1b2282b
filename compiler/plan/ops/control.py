"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import Block


class If(Op):
    """The outputs of `then_branch` if the first input, `bool` of one element, is true, else those of
    `else_branch`. All other inputs are inputs of both blocks.
    """

    else_branch: Block

    then_branch: Block


class Loop(Op):
    """Runs `body` while its condition holds, at most `M` times."""

    body: Block
    """The block to repeat."""

    carried: int
    """The number of carried values."""


class Scan(Op):
    """Runs `body` once for each slice of the scanned inputs."""

    body: Block
    """The block to repeat."""

    inputs: list[Scanned]
    """The axis and order of the slices of each scanned input."""

    outputs: list[Scanned]
    """The axis and order of the slices of each stacked output. The states are not stacked."""

    states: int
    """The number of states."""


class Scanned(Struct):
    """The axis along which a tensor is sliced or stacked, and the order of the slices."""

    axis: int
    """The axis of the whole tensor; a negative axis counts from the end."""

    reverse: bool
    """Whether the order is from the last slice to the first."""
