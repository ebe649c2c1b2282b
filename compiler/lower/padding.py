"""The padding of sliding windows, `auto_pad` and `pads`, for convolutions and poolings."""

from __future__ import annotations

from compiler.lower.node import Node
from compiler.plan import ops


def padding(node: Node, axes: int) -> ops.AnyPadding:
    """The padding of a window over `axes` spatial axes; `pads` has an effect only if `auto_pad` is `NOTSET`."""
    auto, pads = node.string("auto_pad", "NOTSET"), node.ints("pads", [0] * (2 * axes))
    if auto == "SAME_UPPER":
        return "SameUpper"
    if auto == "SAME_LOWER":
        return "SameLower"
    if auto == "VALID":
        pads = [0] * (2 * axes)
    elif auto != "NOTSET":
        node.refuse("CC0202", f"{node.op_type} has no auto_pad {auto!r}")
    if len(pads) != 2 * axes or min(pads, default=0) < 0:
        node.refuse("CC0202", f"{node.op_type}'s pads {pads} are not one before and one after each of {axes} axes")
    return ops.Padding.Explicit([[before, after] for before, after in zip(pads[:axes], pads[axes:], strict=True)])


def window_ints(node: Node, name: str, axes: int) -> list[int]:
    """An attribute with one positive number per spatial axis; 1 for each if it is absent."""
    numbers = node.ints(name, [1] * axes)
    if len(numbers) != axes or min(numbers, default=1) < 1:
        node.refuse("CC0202", f"{node.op_type}'s {name} {numbers} are not a positive number for each of {axes} axes")
    return numbers
