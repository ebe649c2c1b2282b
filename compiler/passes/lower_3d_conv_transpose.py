"""Replaces 3-D transposed convolutions with 2-D ones that give the planes of several depths at once.

The 2-D operator gives `[N, D, K·M, H', W']`: the `K` planes that each plane of the image adds to the result, at the
depths `d · stride + k · dilation`. Planes of the same depth are added. Without such planes, a reshape is enough.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import onnx_ir as ir

from compiler.ir.graph import static_shape
from compiler.ir.views.window import WindowView
from compiler.rewrite.volume import Sizes, UnloweredError, Volumes, lowering_pass, volume
from compiler.rewrite.window_axes import Window

__all__ = ["lower_3d_conv_transpose"]

_PLANES_FIRST = (0, 2, 1, 3, 4)
"""`[N, C, D, H, W]` → `[N, D, C, H, W]`, and back."""
_DEPTH, _CHANNELS, _AXES = 1, 2, 3
"""The axes of depth and channels of planes; the number of spatial axes."""


@dataclass(frozen=True)
class _Depth:
    """The depth axis: the taps of the window, and the part of their sum that is the result.

    Tap `k` adds to the depths `(d + shift) · stride + phase`, where `k · dilation = shift · stride + phase`.
    """

    taps: int
    stride: int
    dilation: int
    before: int
    """The number of planes to cut off before the result."""
    after: int
    """The number of planes to cut off after the result; if it is negative, to add."""

    @property
    def most(self) -> int:
        """The largest shift."""
        return self.shift(self.taps - 1)

    def shift(self, tap: int) -> int:
        """See the class."""
        return tap * self.dilation // self.stride

    def phase(self, tap: int) -> int:
        """See the class."""
        return tap * self.dilation % self.stride

    @property
    def is_apart(self) -> bool:
        """Whether the planes of the taps follow each other, without overlap or gap."""
        return self.dilation == 1 and self.taps == self.stride

    @classmethod
    def of(cls, view: WindowView[ir.Value], x: ir.Value, window: Window) -> _Depth:
        """The depth axis of a node; see the runtime's operator ConvTranspose for the sizes."""
        stride, dilation, taps = window.strides[0], window.dilations[0], window.kernel[0]
        extra, asked = _output_padding(view)[0], _output_sizes(view)
        reach = (taps - 1) * dilation + 1 + extra
        made = ((taps - 1) * dilation // stride + 1) * stride  # beyond the first plane of the last group
        if asked is None and window.auto_pad in ("NOTSET", "VALID"):
            before, after = window.pads[0] if window.auto_pad == "NOTSET" else (0, 0)
            return cls(taps, stride, dilation, before, made - reach + after)
        if asked is None:
            total, wanted = max(0, reach - stride), stride
        else:
            depth = None if x.shape is None else x.shape.dims[2]
            if not isinstance(depth, int):
                raise UnloweredError("its pads depend on the depth, which is not known (output_shape)", depth)
            wanted = asked[0] - (depth - 1) * stride
            total = max(0, reach - wanted)
        before = total // 2 if window.auto_pad == "SAME_UPPER" else total - total // 2
        return cls(taps, stride, dilation, before, made - before - wanted)


def _conv_transpose(node: ir.Node, new: Volumes) -> list[ir.Value]:
    """`ConvTranspose(x, weights, bias)`."""
    x, window, weights = volume(node), Window.of(node), node.inputs[1]
    view, shape = WindowView[ir.Value].of(node), static_shape(weights)
    if view is None or weights is None or shape is None or view.groups < 1:
        raise UnloweredError("the sizes of its weights or its groups are not known")
    depth, bias = _Depth.of(view, x, window), node.inputs[2] if len(node.inputs) > 2 else None
    images = new.add("Transpose", x, perm=_PLANES_FIRST)
    flat = new.reshape(images, [[(x, 0), (x, 2)], [(x, 1)], [(x, 3)], [(x, 4)]])
    asked = _output_sizes(view)
    given = window.attributes((1, 2)) | {
        "output_padding": _output_padding(view)[1:],
        "output_shape": None if asked is None else asked[1:],
    }
    is_biased = bias is not None and depth.is_apart and depth.after >= 0 and view.groups == 1
    early = new.add("Concat", *[bias] * depth.taps, axis=0) if is_biased else None
    [planes] = new.again(node, flat, _flat_weights(weights, new), early, **given)
    planes = _by_tap(planes, x, (view.groups, depth.taps, shape[1]), new)
    result = _cropped(_sum(planes, depth, view.groups * shape[1], new), depth, new)
    if bias is not None and not is_biased:
        result = new.add("Add", result, new.reshape(bias, [[(bias, 0)], [1], [1]]))
    return [new.add("Transpose", result, perm=_PLANES_FIRST)]


def _output_padding(view: WindowView[ir.Value]) -> list[int]:
    """The size that the node adds after each axis of its result."""
    numbers = [*view.output_padding_of(_AXES)]
    if len(numbers) != _AXES or min(numbers) < 0:
        raise UnloweredError(f"output_padding {numbers} is not a number for each of {_AXES} axes")
    return numbers


def _output_sizes(view: WindowView[ir.Value]) -> list[int] | None:
    """The sizes of the result's spatial axes; `None` if the node does not state them."""
    sizes = view.output_sizes_of(_AXES)
    if sizes is not None and (len(sizes) != _AXES or min(sizes) < 0):
        raise UnloweredError(f"output_shape {[*sizes]} is not a size for each of {_AXES} axes")
    return None if sizes is None else [*sizes]


def _flat_weights(weights: ir.Value, new: Volumes) -> ir.Value:
    """`[C, M/groups, K, …]` → `[C, K·M/groups, …]`."""
    planes = new.add("Transpose", weights, perm=_PLANES_FIRST)
    return new.reshape(planes, [[(planes, 0)], [(planes, 1), (planes, 2)], [(planes, 3)], [(planes, 4)]])


def _by_tap(planes: ir.Value, x: ir.Value, sizes: tuple[int, int, int], new: Volumes) -> ir.Value:
    """`[N·D, groups·K·M/groups, H', W']` → `[N, D, K·M, H', W']`."""
    groups, taps, each = sizes
    plane = [(planes, 2), (planes, 3)]
    result = planes
    if groups > 1 and taps > 1:
        apart = new.reshape(planes, [[(planes, 0)], [groups], [taps], [each, *plane]])
        result = new.add("Transpose", apart, perm=(0, 2, 1, 3))
    return new.reshape(result, [[(x, 0)], [(x, 2)], [groups * taps * each], *([size] for size in plane)])


def _sum(planes: ir.Value, depth: _Depth, channels: int, new: Volumes) -> ir.Value:
    """`[N, D, K·M, H', W']` → `[N, (D + most) · stride, M, H', W']`: the planes of all taps at their depths."""
    together = planes
    if not depth.is_apart:
        phases = [depth.phase(tap) for tap in range(depth.taps)]
        starts = sorted(set(phases))
        parts = []
        for phase, end in zip(starts, [*starts[1:], depth.stride], strict=True):
            taps = [tap for tap in range(depth.taps) if phases[tap] == phase]
            part = _shifted(planes, taps[0], depth, channels, new)
            for tap in taps[1:]:
                part = new.add("Add", part, _shifted(planes, tap, depth, channels, new))
            if missing := (end - phase - 1) * channels:  # depths that no tap reaches
                part = new.add("Pad", part, new.ints(0, missing), None, new.ints(_CHANNELS))
            parts.append(part)
        together = parts[0] if len(parts) == 1 else new.add("Concat", *parts, axis=_CHANNELS)
    sizes: Sizes = [[(planes, 0)], [(together, 1), depth.stride], [channels], [(planes, 3)], [(planes, 4)]]
    return new.reshape(together, sizes)


def _shifted(planes: ir.Value, tap: int, depth: _Depth, channels: int, new: Volumes) -> ir.Value:
    """`[N, D + most, M, H', W']`: the planes of a tap, between planes of zeros."""
    part = planes
    if depth.taps > 1:
        start = tap * channels
        part = new.add("Slice", planes, new.ints(start), new.ints(start + channels), new.ints(_CHANNELS))
    if not depth.most:
        return part
    pads = new.ints(depth.shift(tap), depth.most - depth.shift(tap))
    return new.add("Pad", part, pads, None, new.ints(_DEPTH))


def _cropped(planes: ir.Value, depth: _Depth, new: Volumes) -> ir.Value:
    """The planes of the result."""
    if depth.before or depth.after > 0:
        end = -depth.after if depth.after > 0 else sys.maxsize
        planes = new.add("Slice", planes, new.ints(depth.before), new.ints(end), new.ints(_DEPTH))
    if depth.after < 0:
        planes = new.add("Pad", planes, new.ints(0, -depth.after), None, new.ints(_DEPTH))
    return planes


lower_3d_conv_transpose = lowering_pass(
    "lower_3d_conv_transpose", {"ConvTranspose": _conv_transpose}, result="3-D transposed convolutions lowered"
)
