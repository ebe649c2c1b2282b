"""The inputs of runs, which a caller gives or makes for the inputs that a plan declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.plan import TensorInfo

__all__ = ["Inputs", "made_for"]

Inputs = Mapping[str, Any] | Callable[[Sequence["TensorInfo"]], Mapping[str, Any]]
"""The inputs of the runs, or a function that makes them for the inputs that a plan declares."""


def made_for(inputs: Inputs, declared: Sequence[TensorInfo]) -> Mapping[str, Any]:
    """The inputs of the runs."""
    return inputs if isinstance(inputs, Mapping) else inputs(declared)
