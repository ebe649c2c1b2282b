"""The axes of reductions, for the patterns of normalizations."""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir.graph import constant_of, rank

__all__ = ["axes_of", "keeps_axes", "trailing_axis"]


def axes_of(node: ir.Node) -> tuple[int, ...] | None:
    """The axes that a Reduce* node reduces, counted from the end and in order; `None` where they are not known.

    They are an attribute, or since opset 13 (ReduceSum) and 18 an input.
    """
    size = rank(node.inputs[0])
    if "axes" in node.attributes:
        axes = [int(axis) for axis in node.attributes["axes"].as_ints()]
    elif len(node.inputs) > 1 and node.inputs[1] is not None:
        array = constant_of(node.inputs[1])
        if array is None:
            return None
        axes = [int(axis) for axis in array.ravel()]
    else:
        axes = []
    if not axes and not _is_flag(node, "noop_with_empty_axes", 0):
        axes = list(range(size)) if size is not None else []
    if any(axis >= 0 for axis in axes) and size is None:
        return None
    return tuple(sorted(axis if axis < 0 else axis - (size or 0) for axis in axes)) or None


def keeps_axes(node: ir.Node) -> bool:
    """Whether the reduced axes stay, with size 1."""
    return _is_flag(node, "keepdims", 1)


def trailing_axis(*nodes: ir.Node) -> int | str:
    """The first of the trailing axes, counted from the end, that all nodes reduce and keep; or why there is none."""
    found = {axes_of(node) for node in nodes}
    axes = found.pop()
    if found or axes is None:
        return "the axes differ or are not known"
    if not all(keeps_axes(node) for node in nodes):
        return "the axes are dropped"
    if axes != tuple(range(axes[0], 0)):
        return f"the axes {list(axes)} are not the last ones"
    return axes[0]


def _is_flag(node: ir.Node, name: str, default: int) -> bool:
    value = node.attributes[name].as_int() if name in node.attributes else default
    return value != 0
