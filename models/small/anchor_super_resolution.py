"""A super-resolution net for phones, ABPN (Du et al. 2021, https://arxiv.org/abs/2105.09750), by hand.

3×3 convolutions on 28 channels compute a residual of the repeated image, and depth-to-space makes three pixels of each
row and column. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("enlarged",)
HEIGHT, WIDTH, CHANNELS, DEPTH, SCALE = 120, 160, 28, 4, 3


class Enlarger(nn.Module):
    """`image [1, 3, 120, 160]` → `enlarged [1, 3, 360, 480]`."""

    def __init__(self) -> None:
        super().__init__()
        made = 3 * SCALE**2
        self.layers = nn.Sequential(nn.Conv2d(3, CHANNELS, 3, padding=1), nn.ReLU())
        for _ in range(DEPTH):
            self.layers.extend([nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), nn.ReLU()])
        self.layers.extend([nn.Conv2d(CHANNELS, made, 3, padding=1), nn.ReLU(), nn.Conv2d(made, made, 3, padding=1)])

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        repeated = torch.repeat_interleave(image, SCALE**2, 1)
        return F.pixel_shuffle(self.layers(image) + repeated, SCALE).clamp(0, 1)


def build() -> Enlarger:
    return seeded(Enlarger, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"image": noise(1, 3, HEIGHT, WIDTH).sigmoid()}
