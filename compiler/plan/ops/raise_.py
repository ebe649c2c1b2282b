"""Types of a plan. GENERATED from Rust by `make generate`: do not edit."""

from __future__ import annotations

from compiler.plan.encode import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from compiler.plan.ops.types import AnyType


class Raise(Op):
    """Fails with a message. The compiler puts it in place of a branch that cannot run with the known shapes."""

    message: str
    """Why the branch cannot run."""

    types: list[AnyType]
    """The types of the branch's outputs."""
