"""The speech separator Conv-TasNet (Luo and Mesgarani 2019, https://arxiv.org/abs/1809.07454), by hand.

Depthwise convolutions in time, dilated by 1 … 128, compute a mask for each of two speakers. A quarter as wide as the
published one, over a quarter of a second. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("speakers",)
FILTERS, LENGTH, NARROW, WIDE, DEPTH, REPEATS, SPEAKERS = 128, 16, 32, 128, 8, 2, 2
SAMPLES = 4000


class Block(nn.Module):
    """`[N, 32, T]` → the residual and the skip path, each of the same shape."""

    def __init__(self, dilation: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(NARROW, WIDE, 1),
            nn.PReLU(),
            nn.GroupNorm(1, WIDE),
            nn.Conv1d(WIDE, WIDE, 3, dilation=dilation, padding=dilation, groups=WIDE),
            nn.PReLU(),
            nn.GroupNorm(1, WIDE),
        )
        self.residual = nn.Conv1d(WIDE, NARROW, 1)
        self.skip = nn.Conv1d(WIDE, NARROW, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.layers(x)
        return x + self.residual(found), self.skip(found)


class Separator(nn.Module):
    """`mixture [1, 1, 4000]` → `speakers [2, 1, 4000]`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(1, FILTERS, LENGTH, LENGTH // 2, bias=False)
        self.first = nn.Sequential(nn.GroupNorm(1, FILTERS), nn.Conv1d(FILTERS, NARROW, 1))
        self.blocks = nn.ModuleList(Block(1 << index) for _ in range(REPEATS) for index in range(DEPTH))
        self.last = nn.Sequential(nn.PReLU(), nn.Conv1d(NARROW, SPEAKERS * FILTERS, 1), nn.Sigmoid())
        self.decoder = nn.ConvTranspose1d(FILTERS, 1, LENGTH, LENGTH // 2, bias=False)

    def forward(self, mixture: torch.Tensor) -> torch.Tensor:
        encoded = torch.relu(self.encoder(mixture))
        x = self.first(encoded)
        skipped = []
        for block in self.blocks:
            x, skip = block(x)
            skipped.append(skip)
        masks = self.last(sum(skipped)).reshape(SPEAKERS, FILTERS, -1)
        return self.decoder(encoded * masks)


def build() -> Separator:
    return seeded(Separator, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"mixture": noise(1, 1, SAMPLES)}
