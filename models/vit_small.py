"""ViT-small with patches of 16×16 (Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929).

The network is torchvision's, the weights are seeded. The sizes are those of DeiT-small (Touvron et al. 2020, https://arxiv.org/abs/2012.12877).
"""

from __future__ import annotations

import torch
from torchvision.models import VisionTransformer

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("logits",)


def build() -> VisionTransformer:
    """`x [1, 3, 224, 224]` → `logits [1, 1000]`."""
    return seeded(_network, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"x": noise(1, 3, 224, 224)}


def _network() -> VisionTransformer:
    network = VisionTransformer(
        image_size=224, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384, mlp_dim=1536, num_classes=1000
    )
    torch.nn.init.normal_(network.heads.head.weight, std=0.02)  # it begins as zeros
    return network
