"""Reshapes from one shape to another, with symbols."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

__all__ = ["reshape_target"]

Dims = Sequence[int | ir.SymbolicDim]


def reshape_target(given: Dims, wanted: Dims) -> list[int] | None:
    """The shape input of a Reshape between shapes of equal size; `None` if a constant cannot describe the new shape.

    0 stands for the input's size of the same axis, and -1 for the remaining size.
    """
    target: list[int] = []
    for place, dim in enumerate(wanted):
        if isinstance(dim, int):
            target.append(dim)
        else:
            own = given[place] if place < len(given) else None
            target.append(0 if dim.value is not None and dim == own else -1)
    is_possible = target.count(-1) <= 1 and 0 not in list(wanted) and 0 not in list(given)
    return target if is_possible else None
