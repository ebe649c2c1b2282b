"""The shapes of the timed convolutions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Shape:
    """Images `[batch, channels, size, size]`, or `[batch, channels, size]` if `is_line`, and the output channels."""

    batch: int
    channels: int
    outputs: int
    size: int
    kernel: int
    stride: int = 1
    groups: int = 1
    dilation: int = 1
    is_transposed: bool = False
    is_line: bool = False

    @property
    def name(self) -> str:
        """The name on the page."""
        kind = "transposed " if self.is_transposed else ""
        line = "" if self.is_line else "²"
        parts = [f"{kind}{self.batch}×{self.channels}→{self.outputs} {self.size}{line} k{self.kernel}"]
        parts += [f"s{self.stride}"] * (self.stride > 1) + [f"g{self.groups}"] * (self.groups > 1)
        return " ".join(parts + [f"d{self.dilation}"] * (self.dilation > 1))

    @property
    def axes(self) -> int:
        """The number of spatial axes."""
        return 1 if self.is_line else 2

    @property
    def input(self) -> tuple[int, ...]:
        """The shape of the images."""
        return (self.batch, self.channels, *[self.size] * self.axes)

    @property
    def weights(self) -> tuple[int, ...]:
        """The shape of the weights."""
        first, second = (self.channels, self.outputs) if self.is_transposed else (self.outputs, self.channels)
        return (first, second // self.groups, *[self.kernel] * self.axes)

    @property
    def padding(self) -> int:
        """The padding at each end of an axis."""
        whole = self.dilation * (self.kernel - 1)
        return (self.kernel - self.stride) // 2 if self.is_transposed else whole // 2

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of ONNX's operator."""
        axes = self.axes
        return {
            "group": self.groups,
            "strides": [self.stride] * axes,
            "dilations": [self.dilation] * axes,
            "pads": [self.padding] * 2 * axes,
        }

    @property
    def output_size(self) -> int:
        """The size of an output along an axis."""
        reach = self.dilation * (self.kernel - 1) + 1 - 2 * self.padding
        if self.is_transposed:
            return (self.size - 1) * self.stride + reach
        return (self.size - reach) // self.stride + 1

    @property
    def operations(self) -> int:
        """The number of multiplications and additions."""
        pixels = self.size if self.is_transposed else self.output_size
        return 2 * self.batch * math.prod([pixels] * self.axes) * math.prod(self.weights)


def _resnet(batch: int) -> list[Shape]:
    """Layers of ResNet-50."""
    sizes = ((64, 56), (128, 28), (256, 14), (512, 7))
    layers = [Shape(batch, 3, 64, 224, 7, 2)]
    for width, size in sizes:
        layers += [Shape(batch, 4 * width, width, size, 1), Shape(batch, width, width, size, 3)]
        layers += [Shape(batch, width, 4 * width, size, 1)]
    return [*layers, Shape(batch, 256, 256, 28, 3, 2), Shape(batch, 512, 1024, 28, 1, 2)]


SHAPES = [
    *_resnet(1),
    *_resnet(32),
    *(Shape(batch, width, width, size, 3) for batch in (1, 8) for width, size in ((32, 256), (64, 128), (128, 64))),
    *(Shape(batch, 16, 16, 320, 3) for batch in (1, 8)),
    *(Shape(batch, 64, 32, 128, 2, 2, is_transposed=True) for batch in (1, 8)),
    *(Shape(batch, 512, 256, 32, 16, 8, is_transposed=True, is_line=True) for batch in (1, 32)),
    *(Shape(batch, 64, 64, 4096, size, is_line=True) for batch in (1, 32) for size in (3, 11)),
    *(Shape(batch, 32, 32, 8192, 7, dilation=5, is_line=True) for batch in (1, 32)),
    *(Shape(batch, 96, 96, 56, 3, groups=96) for batch in (1, 32)),
    *(Shape(batch, 128, 128, 56, 3, groups=32) for batch in (1, 32)),
    *(Shape(batch, 3, 8, 640, 3, 2) for batch in (1, 8)),
]
"""Layers of networks for images and sound, with small and large batches."""
