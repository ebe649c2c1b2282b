"""The segmenter of roads ENet (Paszke et al. 2016, https://arxiv.org/abs/1606.02147), by hand.

Bottlenecks with residual additions, some dilated or asymmetric, and transposed 2×2 convolutions. It has 16 … 48
channels, less than half of the published ones, and one of the two published stages of dilations. The decoder adds
resized images instead of unpooled ones. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.small.layers import normalized
from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("classes",)
HEIGHT, WIDTH, CLASSES = 256, 448, 4
FIRST, SECOND, THIRD = 16, 32, 48


def asymmetric(channels: int) -> nn.Sequential:
    """A column and a row of five."""
    column = nn.Conv2d(channels, channels, (5, 1), padding=(2, 0), bias=False)
    return nn.Sequential(column, nn.Conv2d(channels, channels, (1, 5), padding=(0, 2)), nn.BatchNorm2d(channels))


class Bottleneck(nn.Module):
    """`x` plus a convolution on a quarter of the channels, between two 1×1 convolutions."""

    def __init__(self, channels: int, dilation: int = 1) -> None:
        super().__init__()
        narrow = channels // 4
        middle = normalized(narrow, narrow, 3, dilation=dilation) if dilation else asymmetric(narrow)
        first, last = normalized(channels, narrow, 1), normalized(narrow, channels, 1)
        self.layers = nn.Sequential(first, nn.PReLU(narrow), middle, nn.PReLU(narrow), last)
        self.activation = nn.PReLU(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.activation(x + self.layers(x))


class Down(nn.Module):
    """`[N, C, H, W]` → `[N, outputs, H / 2, W / 2]`, added to the pooled image."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        narrow = inputs // 2
        first = nn.Sequential(nn.Conv2d(inputs, narrow, 2, 2, bias=False), nn.BatchNorm2d(narrow), nn.PReLU(narrow))
        last = normalized(narrow, outputs, 1)
        self.layers = nn.Sequential(first, normalized(narrow, narrow, 3), nn.PReLU(narrow), last)
        self.missing, self.activation = outputs - inputs, nn.PReLU(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pooled = F.pad(F.max_pool2d(x, 2), (0, 0, 0, 0, 0, self.missing))
        return self.activation(pooled + self.layers(x))


class Up(nn.Module):
    """`[N, C, H, W]` → `[N, outputs, 2 · H, 2 · W]`, added to the resized image."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        narrow = outputs // 2
        transposed = nn.ConvTranspose2d(narrow, narrow, 2, 2, bias=False)
        first, last = normalized(inputs, narrow, 1), normalized(narrow, outputs, 1)
        self.layers = nn.Sequential(first, nn.ReLU(), transposed, nn.BatchNorm2d(narrow), nn.ReLU(), last)
        self.skip = normalized(inputs, outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(F.interpolate(self.skip(x), scale_factor=2.0) + self.layers(x))


class ENet(nn.Module):
    """`image [1, 3, 256, 448]` → logits of `classes [1, 4, 256, 448]`."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, FIRST - 3, 3, 2, 1, bias=False)
        self.norm = nn.Sequential(nn.BatchNorm2d(FIRST), nn.PReLU(FIRST))
        regular = [Bottleneck(SECOND) for _ in range(4)]
        dilated = [Bottleneck(THIRD, dilation) for dilation in (1, 2, 0, 4, 1, 8, 0, 16)]
        down = [Down(FIRST, SECOND), *regular, Down(SECOND, THIRD), *dilated]
        up = [Up(THIRD, SECOND), *(Bottleneck(SECOND) for _ in range(2)), Up(SECOND, FIRST), Bottleneck(FIRST)]
        self.layers = nn.Sequential(*down, *up)
        self.last = nn.ConvTranspose2d(FIRST, CLASSES, 2, 2)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.norm(torch.cat([self.first(image), F.max_pool2d(image, 2)], 1))
        return self.last(self.layers(x))


def build() -> ENet:
    return seeded(ENet, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"image": noise(1, 3, HEIGHT, WIDTH)}
