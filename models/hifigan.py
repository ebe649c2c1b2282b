"""The vocoder HiFi-GAN, in its widest form V1 (Kong et al. 2020, https://arxiv.org/abs/2010.05646), by hand.

Weight-normalized transposed convolutions make 256 samples of each mel frame; after each of them the mean of three
stacks of dilated convolutions is taken. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("audio",)
MELS, WIDTH, FRAMES = 80, 512, 32
STRIDES_AND_SIZES = ((8, 16), (8, 16), (2, 4), (2, 4))
SIZES, DILATIONS, SLOPE = (3, 7, 11), (1, 3, 5), 0.1


def convolution(channels: int, size: int, dilation: int) -> nn.Module:
    """A weight-normalized convolution that keeps the length."""
    return weight_norm(nn.Conv1d(channels, channels, size, dilation=dilation, padding=dilation * (size - 1) // 2))


class Stack(nn.Module):
    """Pairs of convolutions, dilated and not, each pair added to what it was given."""

    def __init__(self, channels: int, size: int) -> None:
        super().__init__()
        self.dilated = nn.ModuleList(convolution(channels, size, dilation) for dilation in DILATIONS)
        self.plain = nn.ModuleList(convolution(channels, size, 1) for _ in DILATIONS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for dilated, plain in zip(self.dilated, self.plain, strict=True):
            x = x + plain(F.leaky_relu(dilated(F.leaky_relu(x, SLOPE)), SLOPE))
        return x


class Stage(nn.Module):
    """`[N, C, T]` → `[N, C / 2, stride · T]`."""

    def __init__(self, channels: int, stride: int, size: int) -> None:
        super().__init__()
        padding = (size - stride) // 2
        self.up = weight_norm(nn.ConvTranspose1d(channels, channels // 2, size, stride, padding=padding))
        self.stacks = nn.ModuleList(Stack(channels // 2, size) for size in SIZES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.up(F.leaky_relu(x, SLOPE))
        return sum(stack(x) for stack in self.stacks) / len(self.stacks)


class Generator(nn.Module):
    """`mel [1, 80, 32]` → `audio [1, 1, 8192]`."""

    def __init__(self) -> None:
        super().__init__()
        self.first = weight_norm(nn.Conv1d(MELS, WIDTH, 7, padding=3))
        stages = (Stage(WIDTH >> index, *each) for index, each in enumerate(STRIDES_AND_SIZES))
        self.stages = nn.Sequential(*stages)
        self.last = weight_norm(nn.Conv1d(WIDTH >> len(STRIDES_AND_SIZES), 1, 7, padding=3))

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.last(F.leaky_relu(self.stages(self.first(mel)))))


def build() -> Generator:
    return seeded(Generator, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"mel": noise(1, MELS, FRAMES)}
