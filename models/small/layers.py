"""Convolutions with batch normalization, which several of the small models consist of."""

from __future__ import annotations

from torch import nn

__all__ = ["normalized", "separable"]


def normalized(
    inputs: int, outputs: int, size: int, stride: int = 1, *, dilation: int = 1, groups: int = 1
) -> nn.Sequential:
    """A 2-D convolution with batch normalization; with stride 1 it keeps the size of the image."""
    padding = dilation * (size - 1) // 2
    convolution = nn.Conv2d(inputs, outputs, size, stride, padding, dilation, groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs))


def separable(inputs: int, outputs: int, stride: int = 1) -> nn.Sequential:
    """A depthwise 3×3 and a 1×1 convolution, each with batch normalization and ReLU."""
    depthwise = normalized(inputs, inputs, 3, stride, groups=inputs)
    return nn.Sequential(depthwise, nn.ReLU(), normalized(inputs, outputs, 1), nn.ReLU())
