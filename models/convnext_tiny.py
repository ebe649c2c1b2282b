"""ConvNeXt-tiny (Liu et al. 2022, https://arxiv.org/abs/2201.03545).

The network is torchvision's, the weights are seeded.
"""

from __future__ import annotations

import torch
from torchvision.models import ConvNeXt, convnext_tiny

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("logits",)


def build() -> ConvNeXt:
    """`x [1, 3, 224, 224]` → `logits [1, 1000]`."""
    return seeded(convnext_tiny, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"x": noise(1, 3, 224, 224)}
