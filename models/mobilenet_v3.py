"""MobileNetV3-large (Howard et al. 2019, https://arxiv.org/abs/1905.02244).

The network is torchvision's, the weights are seeded.
"""

from __future__ import annotations

import torch
from torchvision.models import MobileNetV3, mobilenet_v3_large

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("logits",)


def build() -> MobileNetV3:
    """`x [1, 3, 224, 224]` → `logits [1, 1000]`."""
    return seeded(mobilenet_v3_large, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"x": noise(1, 3, 224, 224)}
