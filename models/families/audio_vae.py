"""An autoencoder of sound in the style of VoxCPM's (Zhou et al. 2025, https://arxiv.org/abs/2509.24650), by hand.

Weight-normalized convolutions that see only the past, depthwise residual units with Snake activations, and a latent
frame for each `2 · 5 · 4` samples. It has fewer channels and smaller strides than the published one.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

__all__ = ["Decoder", "Encoder"]

WIDTH, LATENT, STRIDES = 16, 8, (2, 5, 4)


class Snake(nn.Module):
    """`x + sin²(αx) / (α + 10⁻⁹)`, with an `α` for each channel (https://arxiv.org/abs/2006.08195)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.ones(1, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + (self.alpha + 1e-9).reciprocal() * torch.sin(self.alpha * x).square()


class Past(nn.Module):
    """A convolution of each sample and those before it: `[N, I, T]` → `[N, O, T / stride]`."""

    def __init__(
        self, inputs: int, outputs: int, size: int, stride: int = 1, dilation: int = 1, groups: int = 1
    ) -> None:
        super().__init__()
        self.padding = (size - 1) * dilation + 1 - stride
        self.convolution = weight_norm(nn.Conv1d(inputs, outputs, size, stride, 0, dilation, groups))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(F.pad(x, (self.padding, 0)))


class Upsampled(nn.Module):
    """A transposed convolution that sees only the past: `[N, I, T]` → `[N, O, stride · T]`."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.stride = stride
        self.convolution = weight_norm(nn.ConvTranspose1d(inputs, outputs, 2 * stride, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(x)[..., : -self.stride]


class Residual(nn.Module):
    """`x` plus a dilated depthwise convolution over 7 samples and one over the channels, each after a Snake."""

    def __init__(self, channels: int, dilation: int) -> None:
        super().__init__()
        depthwise = Past(channels, channels, 7, dilation=dilation, groups=channels)
        self.layers = nn.Sequential(Snake(channels), depthwise, Snake(channels), Past(channels, channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


def _residuals(channels: int) -> list[Residual]:
    return [Residual(channels, dilation) for dilation in (1, 3, 9)]


class Encoder(nn.Module):
    """`audio [N, 1, 40 · T]` → the means and the logarithms of the variances, each `[N, 8, T]`."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [Past(1, WIDTH, 7)]
        for index, stride in enumerate(STRIDES):
            channels = WIDTH << index
            layers += [*_residuals(channels), Snake(channels), Past(channels, 2 * channels, 2 * stride, stride)]
        self.layers = nn.Sequential(*layers)
        self.mean, self.variance = (Past(WIDTH << len(STRIDES), LATENT, 3) for _ in range(2))

    def forward(self, audio: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.layers(audio)
        return self.mean(x), self.variance(x)


class Decoder(nn.Module):
    """`z [N, 8, T]` → `audio [N, 1, 40 · T]`."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [Past(LATENT, LATENT, 7, groups=LATENT), Past(LATENT, WIDTH << len(STRIDES), 1)]
        for index, stride in enumerate(reversed(STRIDES)):
            channels = WIDTH << len(STRIDES) - index
            half = channels // 2
            layers += [Snake(channels), Upsampled(channels, half, stride), *_residuals(half)]
        self.layers = nn.Sequential(*layers, Snake(WIDTH), Past(WIDTH, 1, 7), nn.Tanh())

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.layers(z)
