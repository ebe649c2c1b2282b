"""The choices of prepare: kernels, layouts, storage that steps reuse in place, and memory of live values."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

from compiler.ir.symbols import shown

__all__ = ["Alternative", "Prepared", "PreparedPair", "PreparedStep", "PreparedValue"]


@dataclass(frozen=True)
class PreparedValue:
    """An input or output of a step: `%3:relu`, its type and its layout.

    `layout` is "rows", or "blocks" of channels. `bytes` is its size in memory; `None` if unknown. If `taken` is true,
    the step may reuse the storage of this value.
    """

    value: str
    type: str
    layout: str
    bytes: int | None
    constant: bool
    taken: bool


@dataclass(frozen=True)
class Alternative:
    """A form of a convolution or matrix product that a planner compared.

    `in_blocks` says whether its image and its result are in blocks of channels. `time` is the expected time for one
    image, or for one product of a stack, in multiply-adds of a vector. `saving` is the time that blocks save compared
    with rows; `None` if it is the difference of the times. `part` is `None` for a form of the whole step. If the step
    computes two convolutions, it is 0 for a form of the first one, and 1 for a form of the second.
    """

    form: str
    in_blocks: bool
    time: float
    saving: float | None = None
    part: int | None = None


@dataclass(frozen=True)
class PreparedStep:
    """A step of the plan, or a step that prepare `added` for the step of this `index`.

    `kernel` names the kernel or its form, if there is a choice. `program` is its elementwise computation, and
    `packed_bytes` the size of its packed constants. `dies` lists the values that no later step reads. `alive_bytes` is
    an upper bound on the memory of its block's values and of its kernel's buffers while it runs, without constants. It
    is `None` if a size is unknown, or if the kernel does not state its buffers. `operations` is the number of
    multiplications and additions of its formula, without the operations of its blocks; `None` if a size is unknown.

    `in_place` and `shares` describe the kernel in general, not this step. Its first output reuses the storage of one of
    the inputs whose indices are in `in_place`, if both have one type and nothing else needs this storage. Its outputs
    may share the storage of the inputs in `shares`.

    Steps of the main block have depth 0. If a step of depth `n` runs a nested block, the steps of this block have depth
    `n + 1`.
    """

    index: int
    op: str
    depth: int
    origin: str
    added: bool
    kernel: str | None
    program: str | None
    packed_bytes: int
    inputs: list[PreparedValue | None]
    outputs: list[PreparedValue | None]
    dies: list[str]
    in_place: list[int]
    shares: list[int]
    alive_bytes: int | None
    operations: int | None
    alternatives: list[Alternative]


@dataclass(frozen=True)
class PreparedPair:
    """A pair of the state: an output of a run, and the input of the next run that takes it.

    If `in_place` is true, a run with a state writes only the new rows, into the memory of the state. `copies` lists the
    indices of the steps that still read a copy of the whole value. An If stands for the steps in its branches.
    """

    output: str
    input: str
    in_place: bool
    copies: list[int]


@dataclass(frozen=True)
class Prepared:
    """A plan after prepare.

    `isa` is the instruction set of the kernels, and `block` the number of channels in a block. `constant_bytes` is the
    size of constants that are not packed, and `packed_bytes` the size of packed constants. `peak_bytes` is the largest
    `alive_bytes`. `unknown_steps` is the number of the plan's own steps without `alive_bytes`. `state` lists the pairs
    of the state.
    """

    isa: str
    block: int
    constant_bytes: int
    packed_bytes: int
    peak_bytes: int
    unknown_steps: int
    steps: list[PreparedStep]
    state: list[PreparedPair] = field(default_factory=list)

    @property
    def operations(self) -> int:
        """The sum of the steps' known operations. It counts the steps of each block once."""
        return sum(step.operations or 0 for step in self.steps)

    @property
    def untold(self) -> int:
        """The former name of `unknown_steps`. It is deprecated."""
        warnings.warn("Prepared.untold is deprecated: use unknown_steps", DeprecationWarning, stacklevel=2)
        return self.unknown_steps

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Prepared:
        """The prepared plan from the runtime's JSON."""
        state = [PreparedPair(**pair) for pair in data["state"]]
        return cls(**{**data, "steps": [_step(step) for step in data["steps"]], "state": state})


def _step(data: dict[str, Any]) -> PreparedStep:
    values = {which: [_value(value) for value in data[which]] for which in ("inputs", "outputs")}
    return PreparedStep(
        **{
            **data,
            **values,
            "dies": [shown(name) for name in data["dies"]],
            "alternatives": [Alternative(**each) for each in data["alternatives"]],
        }
    )


def _value(data: dict[str, Any] | None) -> PreparedValue | None:
    return (
        None if data is None else PreparedValue(**{**data, "value": shown(data["value"]), "type": shown(data["type"])})
    )
