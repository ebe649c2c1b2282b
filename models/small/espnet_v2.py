"""The segmenter ESPNetv2 (Mehta et al. 2019, https://arxiv.org/abs/1811.11431), by hand.

Units of four parallel depthwise convolutions with different dilations, whose results are added one after another. It
has 16 … 48 channels, and transposed 2×2 convolutions as decoder. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.small.layers import normalized
from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("classes",)
HEIGHT, WIDTH, CLASSES = 128, 224, 4
BRANCHES, WIDTHS, REPEATS = 4, (16, 32, 48), (2, 4)


class Unit(nn.Module):
    """A grouped 1×1 convolution, dilated depthwise convolutions, and a grouped 1×1 convolution, added to `x`.

    With stride 2, the pooled image takes the place of `x`, and stands before the new channels.
    """

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        made = outputs - inputs if stride > 1 else outputs
        narrow = made // BRANCHES
        self.first = nn.Sequential(normalized(inputs, narrow, 1, groups=BRANCHES), nn.PReLU(narrow))
        depthwise = [normalized(narrow, narrow, 3, stride, dilation=each, groups=narrow) for each in range(1, 5)]
        self.branches = nn.ModuleList(depthwise)
        self.norm = nn.Sequential(nn.BatchNorm2d(made), nn.PReLU(made))
        self.last = normalized(made, made, 1, groups=BRANCHES)
        self.stride, self.activation = stride, nn.PReLU(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        narrow = self.first(x)
        sums = [self.branches[0](narrow)]
        for branch in self.branches[1:]:
            sums.append(sums[-1] + branch(narrow))
        found = self.last(self.norm(torch.cat(sums, 1)))
        if self.stride == 1:
            return self.activation(x + found)
        return self.activation(torch.cat([F.avg_pool2d(x, 3, 2, 1), found], 1))


class ESPNet(nn.Module):
    """`image [1, 3, 128, 224]` → logits of `classes [1, 4, 128, 224]`."""

    def __init__(self) -> None:
        super().__init__()
        first, *others = WIDTHS
        self.first = nn.Sequential(normalized(3, first, 3, 2), nn.PReLU(first))
        pairs = zip(WIDTHS, others, REPEATS, strict=False)
        self.stages = nn.ModuleList(
            nn.Sequential(Unit(inputs, outputs, 2), *(Unit(outputs, outputs) for _ in range(count)))
            for inputs, outputs, count in pairs
        )
        narrower = zip(WIDTHS[:0:-1], WIDTHS[-2::-1], strict=True)
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, 2) for wide, narrow in narrower)
        self.last = nn.ConvTranspose2d(first, CLASSES, 2, 2)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        levels = [self.first(image)]
        for stage in self.stages:
            levels.append(stage(levels[-1]))
        x = levels.pop()
        for up in self.up:
            x = torch.relu(levels.pop() + up(x))
        return self.last(x)


def build() -> ESPNet:
    return seeded(ESPNet, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"image": noise(1, 3, HEIGHT, WIDTH)}
