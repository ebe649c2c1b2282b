"""Replaces 3-D convolutions with 2-D ones over the planes of all images, whose channels are those of several depths.

The 2-D convolution that computes depth `d'` reads the channels of the `K` planes below the window: `[N·D', K·C, H, W]`.
A sum of `K` convolutions needs no such copy, but stores and adds `K` results of the size of the output.
"""

from __future__ import annotations

import sys

import numpy as np
import onnx_ir as ir

from compiler.ir.graph import constant_of, rank, static_shape
from compiler.ir.views.window import WindowView
from compiler.rewrite.volume import Sizes, UnloweredError, Volumes, lowering_pass, volume
from compiler.rewrite.window_axes import Window

__all__ = ["lower_3d_conv"]

_PLANES_FIRST = (0, 2, 1, 3, 4)
"""`[N, C, D, H, W]` → `[N, D, C, H, W]`, and back."""
_PLANE = (1, 2)
"""The axes of the height and the width of a window."""
_CHANNELS = 2
"""The axis of the channels of planes."""


def _conv(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`Conv(x, weights, bias)`."""
    return [_convolved(node, 1, None, new)]


def _conv_integer(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`ConvInteger(x, weights, x_zero_point, w_zero_point)`."""
    return [_convolved(node, 1, node.inputs[2] if len(node.inputs) > 2 else None, new)]


def _qlinear_conv(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`QLinearConv(x, x_scale, x_zero_point, weights, …)`."""
    return [_convolved(node, 3, node.inputs[2], new)]


def _convolved(node: ir.Node, at: int, zero: ir.Value | None, new: Volumes) -> ir.Value:
    """The convolution with the weights of input `at`. `zero` is the element that pads the image; `None` is 0."""
    x, window, weights = volume(node), Window.of(node), node.inputs[at]
    if weights is None or rank(weights) != rank(x):
        raise UnloweredError("the rank of its weights is not known")
    if window.is_trivial(_PLANE):
        return _along_depth(node, at, window, new)
    planes = _padded(new.add("Transpose", x, perm=_PLANES_FIRST), zero, _depth_pads(x, window), new)
    planes = _joined(planes, window, *_groups(node, weights), new)
    images: Sizes = [[(planes, 0), (planes, 1)], [(planes, 2)], [(planes, 3)], [(planes, 4)]]
    flat = new.reshape(planes, images, allows_zero=False)  # a window deeper than the image leaves no planes
    inputs = [flat, *node.inputs[1:]]
    inputs[at] = _flat_weights(weights, new)
    [result] = new.again(node, *inputs, **window.attributes(_PLANE))
    sizes = [[(planes, 0)], [(planes, 1)], *([(result, axis)] for axis in (1, 2, 3))]
    return new.add("Transpose", new.reshape(result, sizes), perm=_PLANES_FIRST)


def _along_depth(node: ir.Node, at: int, window: Window, new: Volumes) -> ir.Value:
    """A convolution along the depth alone: `[N, C, D, H·W]` with weights `[M, C, K, 1]`."""
    x, inputs = volume(node), [*node.inputs]
    inputs[0] = new.reshape(x, [[(x, 0)], [(x, 1)], [(x, 2)], [(x, 3), (x, 4)]])
    weights = inputs[at]
    if weights is not None:
        inputs[at] = new.reshape(weights, [[(weights, 0)], [(weights, 1)], [(weights, 2)], [1]])
    [result] = new.again(node, *inputs, **window.attributes((0,)))
    return new.reshape(result, [[(x, 0)], [(result, 1)], [(result, 2)], [(x, 3)], [(x, 4)]])


def _groups(node: ir.Node, weights: ir.Value) -> tuple[int, int]:
    """The number of groups, and of the channels of the image in each."""
    view, shape = WindowView[ir.Value].of(node), static_shape(weights)
    groups = 1 if view is None else view.groups
    if shape is None or groups < 1:
        raise UnloweredError("the sizes of its weights or its groups are not known")
    return groups, shape[1]


def _depth_pads(x: ir.Value, window: Window) -> tuple[int, int]:
    """The pads before and after the depth."""
    if window.auto_pad == "NOTSET":
        return window.pads[0]
    if window.auto_pad == "VALID":
        return 0, 0
    if window.auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        raise UnloweredError(f"there is no auto_pad {window.auto_pad!r}")
    reach, stride = (window.kernel[0] - 1) * window.dilations[0] + 1, window.strides[0]
    depth = None if x.shape is None else x.shape.dims[2]
    if isinstance(depth, int):
        total = max(0, (-(-depth // stride) - 1) * stride + reach - depth)
    elif stride == 1:
        total = reach - 1
    else:
        reason = f"its pads depend on the depth, which is not known (auto_pad {window.auto_pad})"
        raise UnloweredError(reason, depth)
    less, more = total // 2, total - total // 2
    return (less, more) if window.auto_pad == "SAME_UPPER" else (more, less)


def _padded(planes: ir.Value, zero: ir.Value | None, pads: tuple[int, int], new: Volumes) -> ir.Value:
    """`[N, D, C, H, W]` with planes of the zero point before the first and after the last one."""
    if pads == (0, 0):
        return planes
    if zero is not None and rank(zero) != 0:
        zero = new.add("Reshape", zero, new.constant(np.zeros(0, np.int64), "numbers"))
    return new.add("Pad", planes, new.ints(*pads), zero, new.ints(1))


def _joined(planes: ir.Value, window: Window, groups: int, each: int, new: Volumes) -> ir.Value:
    """`[N, D', K·C, H, W]`: the channels of the planes below the window at each depth, in the order of the weights."""
    count, dilation, stride = window.kernel[0], window.dilations[0], window.strides[0]
    shape = planes.shape
    if shape is not None and isinstance(shape.dims[1], int) and shape.dims[1] <= (count - 1) * dilation:
        raise UnloweredError("its window is deeper than the image")
    if count == stride == 1:
        return planes
    starts = [tap * dilation for tap in range(count)]
    taps = [_slice(planes, start, start - starts[-1], stride, new) for start in starts]
    joined = taps[0] if count == 1 else new.add("Concat", *taps, axis=_CHANNELS)
    if groups == 1 or count == 1:
        return joined
    return _grouped(joined, taps[0], (count, groups, each), new)


def _slice(planes: ir.Value, start: int, end: int, step: int, new: Volumes) -> ir.Value:
    """Every `step`-th plane from `start` on, without the last `-end` planes."""
    if (start, end, step) == (0, 0, 1):
        return planes
    end = end if end else sys.maxsize
    return new.add("Slice", planes, new.ints(start), new.ints(end), new.ints(1), new.ints(step))


def _grouped(joined: ir.Value, tap: ir.Value, sizes_of: tuple[int, int, int], new: Volumes) -> ir.Value:
    """`[N, D', K·C, H, W]` with channels in the order `[groups, K, C/groups]` instead of `[K, groups, C/groups]`."""
    count, groups, each = sizes_of
    sizes: Sizes = [[(tap, 0)], [(tap, 1)], [count, groups, each], [(tap, 3)], [(tap, 4)]]
    apart = new.reshape(joined, [[(tap, 0), (tap, 1)], [count], [groups], [each, (tap, 3), (tap, 4)]])
    return new.reshape(new.add("Transpose", apart, perm=(0, 2, 1, 3)), sizes)


def _flat_weights(weights: ir.Value, new: Volumes) -> ir.Value:
    """`[M, C, K, …]` → `[M, K·C, …]`."""
    array = constant_of(weights)
    if array is not None:
        moved = np.moveaxis(array, 2, 1)
        return new.constant(moved.reshape(len(moved), -1, *moved.shape[3:]), weights.name or "weights")
    planes = new.add("Transpose", weights, perm=_PLANES_FIRST)
    return new.reshape(planes, [[(planes, 0)], [(planes, 1), (planes, 2)], [(planes, 3)], [(planes, 4)]])


lower_3d_conv = lowering_pass(
    "lower_3d_conv",
    {"Conv": _conv, "ConvInteger": _conv_integer, "QLinearConv": _qlinear_conv},
    result="3-D convolutions lowered",
)
