"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyType


class Optional(Op):
    """An optional that holds the input, or that holds nothing if there is no input."""

    type: AnyType | None = None
    """The type of the optional's value; needed if there is no input."""


class OptionalGetElement(Op):
    """The value of an optional, which must hold one. A value that is not an optional is passed on."""


class OptionalHasElement(Op):
    """Whether the input is present and, if it is an optional, holds a value: `bool []`."""
