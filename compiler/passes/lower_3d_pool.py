"""Replaces 3-D poolings with 2-D ones: first over height and width, then over the depth."""

from __future__ import annotations

import onnx_ir as ir

from compiler.ir.views.window import WindowView
from compiler.rewrite.volume import Sizes, UnloweredError, Volumes, lowering_pass, volume
from compiler.rewrite.window_axes import Window

__all__ = ["lower_3d_pool"]

_DEPTH, _PLANE = (0,), (1, 2)


def _pool(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """A pooling is separable: `[N, C·D, H, W]` → `[N, C·D, H', W']`, and `[N, C, D, H'·W']` → `[N, C, D', H'·W']`."""
    x, window = volume(node), Window.of(node)
    planes = new.reshape(x, _planes(x))
    if window.is_trivial(_DEPTH) or not window.is_trivial(_PLANE):  # LpPool of one element is its magnitude
        [planes] = new.again(node, planes, **window.attributes(_PLANE))
    result = new.reshape(planes, _rows(x, planes))
    if not window.is_trivial(_DEPTH):
        [result] = new.again(node, result, **window.attributes(_DEPTH))
    return [new.reshape(result, _stacked(x, result, planes))]


def _planes(x: ir.Value) -> Sizes:
    """`[N, C·D, H, W]`."""
    return [[(x, 0)], [(x, 1), (x, 2)], [(x, 3)], [(x, 4)]]


def _rows(x: ir.Value, planes: ir.Value) -> Sizes:
    """`[N, C, D, H'·W']` for planes `[N, C·D, H', W']`."""
    return [[(x, 0)], [(x, 1)], [(x, 2)], [(planes, 2), (planes, 3)]]


def _stacked(x: ir.Value, rows: ir.Value, planes: ir.Value) -> Sizes:
    """`[N, C, D', H', W']` for rows `[N, C, D', H'·W']`."""
    return [[(x, 0)], [(x, 1)], [(rows, 2)], [(planes, 2)], [(planes, 3)]]


def _max_pool(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """The maxima and, if a node reads them, their indices in the whole image.

    The first pooling gives the indices of the maxima of the planes, and the second one says which of these to take.
    """
    if len(node.outputs) < 2 or not (node.outputs[1].uses() or node.outputs[1].is_graph_output()):
        return _pool(node, new)
    x, window = volume(node), Window.of(node)
    view = WindowView[ir.Value].of(node)
    if view is None or view.column_major:
        raise UnloweredError("its indices count columns before rows (storage_order)")
    planes, first = new.again(node, new.reshape(x, _planes(x)), outputs=2, **window.attributes(_PLANE))
    rows, second = new.again(node, new.reshape(planes, _rows(x, planes)), outputs=2, **window.attributes(_DEPTH))
    indices = new.add("Gather", new.reshape(first, [[(first, axis) for axis in range(4)]]), second)
    return [new.reshape(value, _stacked(x, rows, planes)) for value in (rows, indices)]


def _global(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """A pooling over all spatial axes: `[N, C, D·H·W]` → `[N, C, 1]`."""
    x = node.inputs[0]
    if x is None or x.shape is None:
        raise UnloweredError("the rank of its input is not known")
    axes = range(2, len(x.shape))
    row = new.reshape(x, [[(x, 0)], [(x, 1)], [(x, axis) for axis in axes]])
    [result] = new.again(node, row)
    return [new.reshape(result, [[(x, 0)], [(x, 1)], *([1] for _ in axes)])]


lower_3d_pool = lowering_pass(
    "lower_3d_pool",
    {
        "MaxPool": _max_pool,
        "AveragePool": _pool,
        "LpPool": _pool,
        "GlobalMaxPool": _global,
        "GlobalAveragePool": _global,
        "GlobalLpPool": _global,
    },
    result="3-D poolings lowered",
)
