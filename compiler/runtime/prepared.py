"""What a session decided before a run: kernels, layouts, what is taken over in place, and what is alive at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compiler.ir.symbols import shown

__all__ = ["Alternative", "Prepared", "PreparedStep", "PreparedValue"]


@dataclass(frozen=True)
class PreparedValue:
    """A value that a step takes or gives: `%3:relu`, its type, and how it is held.

    `layout` is "rows", or "blocks" of 16 channels; `bytes` are those that it takes, where its size is known. The step
    may take over the storage of a value that is `taken`.
    """

    value: str
    type: str
    layout: str
    bytes: int | None
    constant: bool
    taken: bool


@dataclass(frozen=True)
class Alternative:
    """A form of a convolution that the planner compared.

    `in_blocks` says whether its image is in blocks of channels already, and its result stays so. `time` is that of one
    image as the planner expects it, in multiply-adds of a vector.
    """

    form: str
    in_blocks: bool
    time: float


@dataclass(frozen=True)
class PreparedStep:
    """A step of the plan, or one that was `added` for the step of this `index`.

    `kernel` names the kernel or its form, where there is a choice; `program` is what it computes elementwise; and
    `packed_bytes` are what was packed of its constants. The values in `dies` are read by nobody after it. `alive_bytes`
    are what the values of its block hold while it runs, and its op beside them, at most, constants aside; `None` where
    a size is not known, or the op does not tell what it holds.

    Its op can give its first output the storage of one of the inputs that `in_place` numbers, and its outputs may share
    that of those in `shares`: what the op is able to do, and not what it does here.

    A step of a block that a step of depth `n` runs has depth `n + 1`.
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
    alternatives: list[Alternative]


@dataclass(frozen=True)
class Prepared:
    """A plan as a session has prepared it.

    `isa` is the instruction set of the kernels; `constant_bytes` are held beside the `packed_bytes`. `peak_bytes` is
    the most of `alive_bytes`, and `untold` the number of steps that have none.
    """

    isa: str
    constant_bytes: int
    packed_bytes: int
    peak_bytes: int
    untold: int
    steps: list[PreparedStep]

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Prepared:
        """What the runtime tells."""
        return cls(**{**data, "steps": [_step(step) for step in data["steps"]]})


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
