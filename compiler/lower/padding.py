"""The padding, strides and dilations of sliding windows, for convolutions and poolings."""

from __future__ import annotations

from compiler.ir.views.window import WindowView
from compiler.lower.node import Node
from compiler.plan import Value, ops


def padding(node: Node, window: WindowView[Value], axes: int) -> ops.AnyPadding:
    """The padding of a window over `axes` spatial axes; `pads` has an effect only if `auto_pad` is `NOTSET`."""
    if window.auto_pad == "SAME_UPPER":
        return "SameUpper"
    if window.auto_pad == "SAME_LOWER":
        return "SameLower"
    if window.auto_pad == "VALID":
        return ops.Padding.Explicit([[0, 0]] * axes)
    if window.auto_pad != "NOTSET":
        node.refuse("CC0202", f"{node.op_type} has no auto_pad {window.auto_pad!r}")
    return ops.Padding.Explicit(explicit_pads(node, window, axes))


def explicit_pads(node: Node, window: WindowView[Value], axes: int) -> list[list[int]]:
    """The pads before and after each of `axes` spatial axes, which the attribute `pads` lists."""
    pads = list(window.pads_of(axes))
    if len(pads) != 2 * axes or min(pads, default=0) < 0:
        node.refuse("CC0202", f"{node.op_type}'s pads {pads} are not one before and one after each of {axes} axes")
    return [[before, after] for before, after in zip(pads[:axes], pads[axes:], strict=True)]


def strides(node: Node, window: WindowView[Value], axes: int) -> list[int]:
    """The stride along each of `axes` spatial axes, a positive number."""
    return positive(node, "strides", window.strides_of(axes), axes)


def dilations(node: Node, window: WindowView[Value], axes: int) -> list[int]:
    """The dilation along each of `axes` spatial axes, a positive number."""
    return positive(node, "dilations", window.dilations_of(axes), axes)


def positive(node: Node, name: str, given: tuple[int, ...], axes: int) -> list[int]:
    """The numbers of an attribute; refuses the node unless there is a positive one for each spatial axis."""
    numbers = list(given)
    if len(numbers) != axes or min(numbers, default=1) < 1:
        node.refuse("CC0202", f"{node.op_type}'s {name} {numbers} are not a positive number for each of {axes} axes")
    return numbers
