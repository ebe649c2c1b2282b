"""ResNet-50 for pictures of 224×224 (He et al. 2015, https://arxiv.org/abs/1512.03385).

The network is torchvision's, the weights are seeded. The last normalization of each block begins as zero, so that the
blocks change little of what they are given, as trained ones do: else rounding errors grow from block to block.
"""

from __future__ import annotations

from functools import partial

import torch
from torchvision.models import ResNet, resnet50

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("logits",)


def build() -> ResNet:
    """`x [1, 3, 224, 224]` → `logits [1, 1000]`."""
    return seeded(partial(resnet50, zero_init_residual=True), inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"x": noise(1, 3, 224, 224)}
