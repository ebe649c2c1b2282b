"""EfficientNet-B0 (Tan and Le 2019, https://arxiv.org/abs/1905.11946).

The network is torchvision's, the weights are seeded.
"""

from __future__ import annotations

import torch
from torchvision.models import EfficientNet, efficientnet_b0

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("logits",)


def build() -> EfficientNet:
    """`x [1, 3, 224, 224]` → `logits [1, 1000]`."""
    return seeded(efficientnet_b0, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"x": noise(1, 3, 224, 224)}
