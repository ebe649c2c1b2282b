"""ResNet-50 for pictures of 224×224 (He et al. 2015, https://arxiv.org/abs/1512.03385).

The network is torchvision's, with seeded weights. The scale of each block's last normalization starts at zero. As in a
trained network, each block then changes its input little. Otherwise rounding errors would grow with each block.
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
