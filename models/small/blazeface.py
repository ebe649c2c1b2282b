"""The face detector BlazeFace (Bazarevsky et al. 2019, https://arxiv.org/abs/1907.05047), for a front camera, by hand.

Depthwise 5×5 convolutions on 24 … 96 channels with residual additions. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.small.layers import normalized
from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("boxes", "scores")
SIZE, NARROW, VALUES = 128, 24, 16
SINGLE = ((24, 24, 1), (24, 24, 1), (24, 48, 2), (48, 48, 1), (48, 48, 1))
DOUBLE = ((48, 96, 2), (96, 96, 1), (96, 96, 1))
LAST = ((96, 96, 2), (96, 96, 1), (96, 96, 1))


def pair(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    """A depthwise 5×5 convolution and a 1×1 convolution."""
    return [normalized(inputs, inputs, 5, stride, groups=inputs), normalized(inputs, outputs, 1)]


class Block(nn.Module):
    """`[N, C, H, W]` → `[N, outputs, H / stride, W / stride]`: the layers, added to the pooled and padded image."""

    def __init__(self, inputs: int, outputs: int, stride: int, *, double: bool = False) -> None:
        super().__init__()
        between = [*pair(inputs, NARROW, stride), nn.ReLU()] if double else []
        layers = pair(NARROW, outputs, 1) if double else pair(inputs, outputs, stride)
        self.layers = nn.Sequential(*between, *layers)
        self.stride, self.missing = stride, outputs - inputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.layers(x)
        if self.stride > 1:
            x = F.max_pool2d(x, self.stride)
        if self.missing:
            x = F.pad(x, (0, 0, 0, 0, 0, self.missing))
        return torch.relu(x + found)


class BlazeFace(nn.Module):
    """`image [1, 3, 128, 128]` → `boxes [1, 896, 16]` and `scores [1, 896, 1]` of the anchors."""

    def __init__(self) -> None:
        super().__init__()
        single = [Block(*each) for each in SINGLE]
        double = [Block(*each, double=True) for each in DOUBLE]
        self.first = nn.Sequential(normalized(3, NARROW, 5, 2), nn.ReLU(), *single, *double)
        self.second = nn.Sequential(*(Block(*each, double=True) for each in LAST))
        self.heads = nn.ModuleList(nn.Conv2d(96, anchors * VALUES, 1) for anchors in (2, 6))
        self.scores = nn.ModuleList(nn.Conv2d(96, anchors, 1) for anchors in (2, 6))

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        large = self.first(image)
        images = (large, self.second(large))

        def of_anchors(heads: nn.ModuleList, values: int) -> torch.Tensor:
            found = [head(each).permute(0, 2, 3, 1) for head, each in zip(heads, images, strict=True)]
            return torch.cat([each.reshape(1, -1, values) for each in found], 1)

        return of_anchors(self.heads, VALUES), torch.sigmoid(of_anchors(self.scores, 1))


def build() -> BlazeFace:
    return seeded(BlazeFace, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"image": noise(1, 3, SIZE, SIZE)}
