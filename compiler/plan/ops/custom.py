"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from typing import TypeAlias

from compiler.plan.encode import Op, Variant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyType


class Attribute:
    """The value of an attribute."""

    class Int(Variant):
        """An integer."""

        value: int

    class Float(Variant):
        """A number."""

        value: float

    class String(Variant):
        """A text."""

        value: str

    class Ints(Variant):
        """A list of integers."""

        value: list[int]

    class Floats(Variant):
        """A list of numbers."""

        value: list[float]

    class Strings(Variant):
        """A list of texts."""

        value: list[str]


AnyAttribute: TypeAlias = (
    Attribute.Int | Attribute.Float | Attribute.String | Attribute.Ints | Attribute.Floats | Attribute.Strings
)
"""Any `Attribute`."""


class Custom(Op):
    """An operator that a function of the program computes, which the program has registered as `domain::name`. The
    last inputs of the step are those attributes that are tensors.
    """

    attributes: dict[str, AnyAttribute]
    """The attributes that are no tensors, by name."""

    domain: str
    """The operator's domain."""

    name: str
    """The operator's name."""

    tensors: list[str]
    """The names of the attributes that are tensors."""

    types: list[AnyType]
    """The types of the outputs, as the compiler's registration of the operator stated them."""
