"""The keyword spotter TC-ResNet8 (Choi et al. 2019, https://arxiv.org/abs/1904.03814), by hand.

Residual convolutions over time, for which the 40 coefficients of a frame are channels. The weights are seeded.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("words",)
COEFFICIENTS, FRAMES, WIDTHS, SIZE, WORDS = 40, 101, (16, 24, 32, 48), 9, 12


def in_time(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    """A convolution over time with batch normalization."""
    convolution = nn.Conv1d(inputs, outputs, size, stride, size // 2, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm1d(outputs))


class Block(nn.Module):
    """`[N, C, T]` → `[N, outputs, T / 2]`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(in_time(inputs, outputs, SIZE, 2), nn.ReLU(), in_time(outputs, outputs, SIZE))
        self.skip = nn.Sequential(in_time(inputs, outputs, 1, 2), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.skip(x) + self.layers(x))


class Spotter(nn.Module):
    """`coefficients [1, 40, 101]` → logits of `words [1, 12]`."""

    def __init__(self) -> None:
        super().__init__()
        blocks = (Block(*pair) for pair in pairwise(WIDTHS))
        self.layers = nn.Sequential(nn.Conv1d(COEFFICIENTS, WIDTHS[0], 3, padding=1, bias=False), *blocks)
        self.last = nn.Linear(WIDTHS[-1], WORDS)

    def forward(self, coefficients: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(coefficients).mean(2))


def build() -> Spotter:
    return seeded(Spotter, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"coefficients": noise(1, COEFFICIENTS, FRAMES)}
