"""A small single-shot face detector (Liu et al. 2016, https://arxiv.org/abs/1512.02325), by hand.

Separable convolutions on 16 … 256 channels, and heads on four sizes of the image, as in UltraFace
(https://github.com/Linzaer/Ultra-Light-Fast-Generic-Face-Detector-1MB). The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn

from models.small.layers import normalized, separable
from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("scores", "boxes")
HEIGHT, WIDTH, CLASSES = 240, 320, 2
STAGES = (
    ((16, 32, 1), (32, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 64, 1)),
    ((64, 128, 2), (128, 128, 1), (128, 128, 1)),
    ((128, 256, 2), (256, 256, 1)),
    ((256, 256, 2),),
)
SHAPES, ANCHORS = ((30, 40), (15, 20), (8, 10), (4, 5)), (3, 2, 2, 3)
SIZES = ((10, 16, 24), (32, 48), (64, 96), (128, 192, 256))
SPREAD = (0.1, 0.2)
"""The units of the found offsets and sizes."""


def priors() -> torch.Tensor:
    """The boxes to which found ones are relative: centers and sizes, `[P, 4]`, as shares of the image."""
    found = []
    for (rows, columns), sizes in zip(SHAPES, SIZES, strict=True):
        y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        center = torch.stack([(x + 0.5) / columns, (y + 0.5) / rows], -1)[:, :, None].expand(-1, -1, len(sizes), 2)
        size = torch.tensor([[each / WIDTH, each / HEIGHT] for each in sizes]).expand(rows, columns, -1, 2)
        found.append(torch.cat([center, size], -1).reshape(-1, 4))
    return torch.cat(found)


def heads(values: int) -> nn.ModuleList:
    """A separable convolution for each size of the image, with `values` for each anchor."""
    layers = []
    for stage, anchors in zip(STAGES, ANCHORS, strict=True):
        channels = stage[-1][1]
        depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels)
        layers.append(nn.Sequential(depthwise, nn.ReLU(), nn.Conv2d(channels, anchors * values, 1)))
    return nn.ModuleList(layers)


class Detector(nn.Module):
    """`image [1, 3, 240, 320]` → `scores [1, 4420, 2]` and corners of `boxes [1, 4420, 4]`."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(normalized(3, 16, 3, 2), nn.ReLU())
        self.stages = nn.ModuleList(nn.Sequential(*(separable(*each) for each in stage)) for stage in STAGES)
        self.scores, self.boxes = heads(CLASSES), heads(4)
        self.register_buffer("priors", priors())

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.first(image)
        scores, boxes = [], []
        for stage, score, box in zip(self.stages, self.scores, self.boxes, strict=True):
            x = stage(x)
            scores.append(score(x).permute(0, 2, 3, 1).reshape(1, -1, CLASSES))
            boxes.append(box(x).permute(0, 2, 3, 1).reshape(1, -1, 4))
        return torch.softmax(torch.cat(scores, 1), -1), self.corners(torch.cat(boxes, 1))

    def corners(self, found: torch.Tensor) -> torch.Tensor:
        center = self.priors[:, :2] + SPREAD[0] * found[..., :2] * self.priors[:, 2:]
        half = torch.exp(SPREAD[1] * found[..., 2:]) * self.priors[:, 2:] / 2
        return torch.cat([center - half, center + half], -1)


def build() -> Detector:
    return seeded(Detector, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"image": noise(1, 3, HEIGHT, WIDTH)}
