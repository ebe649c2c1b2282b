"""The keyword spotter DS-CNN, in its small form (Zhang et al. 2017, https://arxiv.org/abs/1711.07128), by hand.

Separable convolutions on 64 channels over the coefficients of one second. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn

from models.small.layers import separable
from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("words",)
FRAMES, COEFFICIENTS, WIDTH, DEPTH, WORDS = 49, 10, 64, 4, 12


class Spotter(nn.Module):
    """`coefficients [1, 1, 49, 10]` → probabilities of `words [1, 12]`."""

    def __init__(self) -> None:
        super().__init__()
        first = nn.Conv2d(1, WIDTH, (10, 4), 2, (5, 1), bias=False)
        blocks = [separable(WIDTH, WIDTH) for _ in range(DEPTH)]
        self.layers = nn.Sequential(first, nn.BatchNorm2d(WIDTH), nn.ReLU(), *blocks)
        self.last = nn.Linear(WIDTH, WORDS)

    def forward(self, coefficients: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.last(self.layers(coefficients).mean((2, 3))), -1)


def build() -> Spotter:
    return seeded(Spotter, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"coefficients": noise(1, 1, FRAMES, COEFFICIENTS)}
