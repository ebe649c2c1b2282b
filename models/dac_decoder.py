"""A decoder in the style of the Descript Audio Codec (Kumar et al. 2023, https://arxiv.org/abs/2306.06546), by hand.

Snake activations, weight-normalized convolutions, dilated residual units and transposed convolutions that make 512
samples of each latent frame; half as wide as the published one. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("audio",)
LATENT, WIDTH, STRIDES, FRAMES = 1024, 768, (8, 8, 4, 2), 32


class Snake(nn.Module):
    """`x + sin²(αx) / α`, with an `α` for each channel (https://arxiv.org/abs/2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.sin(self.alpha * x).pow(2) / self.alpha


class Residual(nn.Module):
    """`x` plus a dilated convolution over 7 samples and one over the channels, each after a Snake."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Snake(channels),
            weight_norm(nn.Conv1d(channels, channels, 7, dilation=dilation, padding=3 * dilation)),
            Snake(channels),
            weight_norm(nn.Conv1d(channels, channels, 1)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class Upsampling(nn.Sequential):
    """`[N, C, T]` → `[N, C / 2, stride · T]`."""

    def __init__(self, channels: int, stride: int) -> None:
        half = channels // 2
        super().__init__(
            Snake(channels),
            weight_norm(nn.ConvTranspose1d(channels, half, 2 * stride, stride, padding=stride // 2)),
            *(Residual(half, dilation) for dilation in (1, 3, 9)),
        )


class Decoder(nn.Module):
    """`z [1, 1024, 32]` → `audio [1, 1, 16384]`."""

    def __init__(self) -> None:
        super().__init__()
        last = WIDTH >> len(STRIDES)
        self.layers = nn.Sequential(
            weight_norm(nn.Conv1d(LATENT, WIDTH, 7, padding=3)),
            *(Upsampling(WIDTH >> index, stride) for index, stride in enumerate(STRIDES)),
            Snake(last),
            weight_norm(nn.Conv1d(last, 1, 7, padding=3)),
            nn.Tanh(),
        )

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.layers(z)


def build() -> Decoder:
    return seeded(Decoder, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"z": noise(1, LATENT, FRAMES)}
