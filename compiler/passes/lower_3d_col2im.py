"""Replaces Col2Im of three spatial dimensions with one of the planes, and one of the columns along the depth.

The sum over blocks is separable: first the blocks of each depth of a block are added to planes, then planes to images.
"""

from __future__ import annotations

import math
from typing import Any

import onnx_ir as ir

from compiler.ir.graph import elements_of
from compiler.ir.views.window import WindowView
from compiler.rewrite.volume import Size, Sizes, UnloweredError, Volumes, lowering_pass

__all__ = ["lower_3d_col2im"]

_AXES = 3


def _col2im(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`Col2Im(x, image_shape, block_shape)`, with `x` `[N, C · block, blocks]`."""
    x, image, block = node.inputs[0], _sizes(node.inputs[1]), _sizes(node.inputs[2])
    if x is None or x.shape is None or len(x.shape) != 3:
        raise UnloweredError("its input is not [N, C, L]")
    strides, dilations, pads = _numbers(node)
    rows = x.shape.dims[1]
    if not isinstance(rows, int) or rows % math.prod(block):
        raise UnloweredError(f"its channels are not a known multiple of {math.prod(block)}")
    counts = [
        (image[axis] + pads[axis] + pads[axis + _AXES] - dilations[axis] * (block[axis] - 1) - 1) // strides[axis] + 1
        for axis in range(_AXES)
    ]
    if min(counts) < 1:
        raise UnloweredError("its window is larger than the image")
    if x.shape.dims[2] != math.prod(counts) and isinstance(x.shape.dims[2], int):
        raise UnloweredError(f"its input has {x.shape.dims[2]} blocks, and its window {math.prod(counts)} places")
    batch: list[Size] = [(x, 0)]
    channels, steps, plane = rows // math.prod(block), block[0] * counts[0], image[1] * image[2]

    def add(blocks: ir.Value, first: int, last: int) -> ir.Value:
        """The blocks added along these axes."""
        given: dict[str, Any] = {
            "strides": strides[first:last],
            "dilations": dilations[first:last],
            "pads": [*pads[first:last], *pads[first + _AXES : last + _AXES]],
        }
        return new.again(node, blocks, new.ints(*image[first:last]), new.ints(*block[first:last]), **given)[0]

    apart: Sizes = [batch, [channels * block[0]], [block[1] * block[2]], [counts[0]], [counts[1] * counts[2]]]
    together: Sizes = [batch, [channels * steps * block[1] * block[2]], [counts[1] * counts[2]]]
    planes = add(new.reshape(new.add("Transpose", new.reshape(x, apart), perm=(0, 1, 3, 2, 4)), together), 1, 3)
    columns = new.add("Transpose", new.reshape(planes, [batch, [channels], [steps], [plane]]), perm=(0, 1, 3, 2))
    result = add(new.reshape(columns, [batch, [channels * plane * block[0]], [counts[0]]]), 0, 1)
    result = new.add("Transpose", new.reshape(result, [batch, [channels], [plane], [image[0]]]), perm=(0, 1, 3, 2))
    return [new.reshape(result, [batch, [channels], *([size] for size in image)])]


def _numbers(node: ir.Node) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The strides, dilations and pads."""
    view = WindowView[ir.Value].of(node)
    if view is None:
        raise UnloweredError("an attribute has the wrong type")
    strides, dilations, pads = view.strides_of(_AXES), view.dilations_of(_AXES), view.pads_of(_AXES)
    if len(strides) != _AXES or len(dilations) != _AXES or min(*strides, *dilations) < 1:
        raise UnloweredError(f"it needs {_AXES} positive strides and dilations")
    if len(pads) != 2 * _AXES or min(pads) < 0:
        raise UnloweredError(f"it needs {2 * _AXES} pads, none of them negative")
    return strides, dilations, pads


def _sizes(value: ir.Value | None) -> list[int]:
    """The three positive sizes of a list that is known."""
    sizes = [each for each in elements_of(value) or () if isinstance(each, int) and each > 0]
    if len(sizes) != _AXES:
        raise UnloweredError("its sizes are not known")
    return sizes


lower_3d_col2im = lowering_pass("lower_3d_col2im", {"Col2Im": _col2im}, result="3-D column-to-image sums lowered")
