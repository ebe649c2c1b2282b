"""Poolings: averages with a divisor of their own, the adaptive average of volumes, and maxima at random places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op
from onnxscript.function_libs.torch_lib.ops import nn

from compiler.frontend.translations.parts import Untranslatable, axes, constant

__all__ = ["TRANSLATIONS"]


def avg_pool2d(
    self: Any,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    """The mean of each window of `[N, C, H, W]` or `[C, H, W]`; with `divisor_override`, its sum divided by this.

    The exporter's own translation ignores the divisor.
    """
    if divisor_override is None:
        return nn.aten_avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad)
    kernel, edges = _pair(kernel_size), _pair(padding)
    steps = _pair(stride) if stride else kernel
    ends = edges
    if ceil_mode:
        sizes = self.shape[-2:]
        if not all(isinstance(size, int) for size in sizes):
            raise Untranslatable("with a divisor and ceil_mode, the sizes of the image must be fixed")
        ends = [_end(*each) for each in zip(sizes, kernel, steps, edges, strict=True)]
    padded = op.Pad(self, axes([*edges, *ends]), constant(0, self), axes([-2, -1]))
    is_image = len(self.shape) == 3
    means = op.AveragePool(op.Unsqueeze(padded, axes([0])) if is_image else padded, kernel_shape=kernel, strides=steps)
    sums = op.Mul(means, constant(kernel[0] * kernel[1] / divisor_override, self))
    return op.Squeeze(sums, axes([0])) if is_image else sums


def _pair(sizes: Sequence[int] | int) -> list[int]:
    numbers = [sizes] if isinstance(sizes, int) else list(sizes)
    return numbers * 2 if len(numbers) == 1 else numbers


def _end(size: int, kernel: int, step: int, edge: int) -> int:
    """How many zeros follow an axis, so that whole windows cover it. No window starts after the first edge."""
    count = -(-(size + 2 * edge - kernel) // step) + 1
    if (count - 1) * step >= size + edge:
        count -= 1
    return max((count - 1) * step + kernel - size - edge, 0)


def adaptive_avg_pool3d(self: Any, output_size: Sequence[int]) -> Any:
    """The mean of each part of a volume `[…, D, H, W]`. Part i of n covers ⌊i · size / n⌋ to ⌈(i + 1) · size / n⌉.

    The mean of a box is the mean of means along each axis. This needs no 3-D operator.
    """
    pooled, rank = self, len(self.shape)
    for axis, count in zip(range(rank - 3, rank), output_size, strict=True):
        size = self.shape[axis]
        if not isinstance(size, int):
            raise Untranslatable("the sizes of the volume must be fixed")
        if count != size:
            pooled = op.Concat(*(_mean(pooled, axis, *_part(i, count, size)) for i in range(count)), axis=axis)
    return op.Identity(pooled)


def _part(index: int, count: int, size: int) -> tuple[int, int]:
    return index * size // count, -(-(index + 1) * size // count)


def _mean(tensor: Any, axis: int, start: int, end: int) -> Any:
    return op.ReduceMean(op.Slice(tensor, axes([start]), axes([end]), axes([axis])), axes([axis]), keepdims=1)


def fractional_max_pool2d(
    self: Any, kernel_size: Sequence[int], output_size: Sequence[int], random_samples: Any
) -> tuple[Any, Any]:
    """The maxima of windows, and their indices in the plane. The numbers in `random_samples` choose the windows.

    The input is `[N, C, H, W]` or `[C, H, W]`, and the samples are `[N, C, 2]`: first along W, then along H. See
    B. Graham, Fractional Max-Pooling, 2014.
    """
    height, width = self.shape[-2:]
    if not isinstance(height, int) or not isinstance(width, int):
        raise Untranslatable("the sizes of the image must be fixed")
    window, is_batch = kernel_size[0] * kernel_size[1], len(self.shape) == 4
    rows = _places(random_samples, 1, height, kernel_size[0], output_size[0])
    columns = _places(random_samples, 0, width, kernel_size[1], output_size[1])
    # [N, C, rows, 1, kernel, 1] · width + [N, C, 1, columns, 1, kernel]
    row_starts = op.Mul(op.Unsqueeze(rows, axes([3, 5])), axes([width]))
    index = op.Add(row_starts, op.Unsqueeze(columns, axes([2, 4])))
    plane = op.Reshape(self if is_batch else op.Unsqueeze(self, axes([0])), axes([0, 0, height * width]))
    index = op.Reshape(index, axes([0, 0, output_size[0] * output_size[1] * window]))
    shape = axes([0, 0, *output_size, window])
    values, places = (op.Reshape(each, shape) for each in (op.GatherElements(plane, index, axis=-1), index))
    found = op.GatherElements(places, op.ArgMax(values, axis=-1, keepdims=1), axis=-1)
    dropped = axes([-1] if is_batch else [0, -1])
    return op.Squeeze(op.ReduceMax(values, axes([-1]), keepdims=1), dropped), op.Squeeze(found, dropped)


def _places(samples: Any, sample: int, size: int, kernel: int, count: int) -> Any:
    """The indices along one axis that each window covers: `[N, C, count, kernel]`."""
    one = op.Gather(samples, axes([sample]), axis=2)  # [N, C, 1]
    last = ir.tensor([size - kernel], dtype=ir.DataType.INT64)
    step = constant((size - kernel) / max(count - 1, 1), samples)
    counted = op.Constant(value=ir.tensor([float(i) for i in range(count - 1)], dtype=samples.dtype))
    starts = op.Sub(_floor(op.Mul(op.Add(counted, one), step)), _floor(op.Mul(one, step)))
    final = op.Expand(op.Constant(value=last), op.Shape(one))
    first = op.Unsqueeze(op.Concat(starts, final, axis=2), axes([3]))
    return op.Add(first, axes(range(kernel)))


def _floor(tensor: Any) -> Any:
    return op.Cast(tensor, to=ir.DataType.INT64)


TRANSLATIONS = {
    "aten::avg_pool2d": avg_pool2d,
    "aten::_adaptive_avg_pool3d": adaptive_avg_pool3d,
    "aten::fractional_max_pool2d": fractional_max_pool2d,
}
