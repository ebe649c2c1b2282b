"""A U-Net for segmentation (Ronneberger et al. 2015, https://arxiv.org/abs/1505.04597), by hand.

Half as wide as the published one, with padded convolutions and batch normalization, as is usual today. The weights are
seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("mask",)
WIDTH, LEVELS, SIZE = 32, 4, 256


class Pair(nn.Sequential):
    """Twice a 3×3 convolution, batch normalization and ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers += [nn.Conv2d(channels, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        super().__init__(*layers)


class UNet(nn.Module):
    """`x [1, 3, 256, 256]` → `mask [1, 1, 256, 256]`."""

    def __init__(self) -> None:
        super().__init__()
        widths = [WIDTH << level for level in range(LEVELS + 1)]
        self.down = nn.ModuleList(Pair(*pair) for pair in zip([3, *widths], widths, strict=False))
        narrower = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, 2) for wide, narrow in narrower)
        self.join = nn.ModuleList(Pair(wide, narrow) for wide, narrow in narrower)
        self.last = nn.Conv2d(WIDTH, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, *others = self.down
        levels = [first(x)]
        for pair in others:
            levels.append(pair(F.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for up, join in zip(self.up, self.join, strict=True):
            x = join(torch.cat([levels.pop(), up(x)], 1))
        return torch.sigmoid(self.last(x))


def build() -> UNet:
    return seeded(UNet, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"x": noise(1, 3, SIZE, SIZE)}
