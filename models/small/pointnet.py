"""The classifier of point clouds PointNet (Qi et al. 2017, https://arxiv.org/abs/1612.00593), by hand.

The same layers see each point, and the largest value over all points is classified. Half as wide as the published one.
The weights are seeded.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("classes",)
POINTS, CLASSES = 256, 40


def each_point(*widths: int) -> nn.Sequential:
    """Layers that see the points one at a time."""
    layers = nn.Sequential()
    for inputs, outputs in pairwise(widths):
        layers.extend([nn.Conv1d(inputs, outputs, 1), nn.BatchNorm1d(outputs), nn.ReLU()])
    return layers


def whole_cloud(*widths: int) -> nn.Sequential:
    """Fully connected layers, the last one without ReLU."""
    layers = nn.Sequential()
    for inputs, outputs in pairwise(widths):
        layers.extend([nn.Linear(inputs, outputs), nn.ReLU()])
    return layers[:-1]


class PointNet(nn.Module):
    """`cloud [1, 3, 256]` → logits of `classes [1, 40]`."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self.turned = each_point(3, 32, 64, 256), whole_cloud(256, 128, 9)
        self.first, self.second = each_point(3, 32, 32), each_point(32, 32, 64, 512)
        self.last = whole_cloud(512, 256, 128, CLASSES)

    def forward(self, cloud: torch.Tensor) -> torch.Tensor:
        rotation = self.turned(self.seen(cloud).amax(2)).reshape(1, 3, 3) + torch.eye(3)
        return self.last(self.second(self.first(rotation @ cloud)).amax(2))


def build() -> PointNet:
    return seeded(PointNet, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"cloud": noise(1, 3, POINTS)}
