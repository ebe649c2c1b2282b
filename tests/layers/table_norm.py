"""Normalizations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.layer import f16, f32, function, layer, translates_no

BY_DESIGN = {"dynamo": "CC0301", "torchscript": "CC0301"}  # it is exported as a pool of three dimensions


class HandWrittenRMSNorm(nn.Module):
    """As in many language models."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class ChannelsFirstLayerNorm(nn.Module):
    """ConvNeXt's layer normalization over the channels of an image."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(size)), nn.Parameter(torch.rand(size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(1, keepdim=True)
        variance = (x - mean).pow(2).mean(1, keepdim=True)
        return self.weight[:, None, None] * ((x - mean) / torch.sqrt(variance + 1e-6)) + self.bias[:, None, None]


LAYERS = [
    layer("BatchNorm1d", lambda: nn.BatchNorm1d(6), f32(3, 6)),
    layer("BatchNorm1d, sequences", lambda: nn.BatchNorm1d(6), f32(3, 6, 5)),
    layer("BatchNorm2d", lambda: nn.BatchNorm2d(6), f32(2, 6, 5, 4)),
    layer("BatchNorm2d, no affine, eps", lambda: nn.BatchNorm2d(6, eps=0.1, affine=False), f32(2, 6, 5, 4)),
    layer("BatchNorm2d, Conv2d", lambda: nn.Sequential(nn.BatchNorm2d(6), nn.Conv2d(6, 4, 3)), f32(2, 6, 5, 4)),
    layer("InstanceNorm1d", lambda: nn.InstanceNorm1d(6), f32(2, 6, 9)),
    layer("InstanceNorm2d", lambda: nn.InstanceNorm2d(6), f32(2, 6, 5, 4)),
    layer("InstanceNorm2d, affine", lambda: nn.InstanceNorm2d(6, affine=True), f32(2, 6, 5, 4)),
    layer(
        "InstanceNorm2d, tracked statistics",
        lambda: nn.InstanceNorm2d(6, affine=True, track_running_stats=True),
        f32(2, 6, 5, 4),
    ),
    layer("GroupNorm", lambda: nn.GroupNorm(3, 6), f32(2, 6, 5, 4)),
    layer("GroupNorm, one group, no affine", lambda: nn.GroupNorm(1, 6, affine=False), f32(2, 6, 5, 4)),
    layer("GroupNorm on sequences", lambda: nn.GroupNorm(2, 6), f32(2, 6, 9)),
    layer("GroupNorm on volumes", lambda: nn.GroupNorm(3, 6), f32(1, 6, 3, 4, 5)),
    layer(
        "GroupNorm, any size",
        lambda: nn.GroupNorm(3, 6),
        f32(1, 6, 5, 4),
        dynamic=({0: "batch", 2: "height", 3: "width"},),
        again=(f32(2, 6, 3, 7),),
    ),
    layer("LayerNorm", lambda: nn.LayerNorm(8), f32(2, 5, 8), steps=["LayerNorm"]),
    layer("LayerNorm over two dims", lambda: nn.LayerNorm((5, 8)), f32(2, 5, 8), steps=["LayerNorm"]),
    layer("LayerNorm, no affine, eps", lambda: nn.LayerNorm(8, eps=0.1, elementwise_affine=False), f32(2, 5, 8)),
    layer("LayerNorm, no bias", lambda: nn.LayerNorm(8, bias=False), f32(2, 5, 8)),
    layer("LayerNorm, half precision", lambda: nn.LayerNorm(8).half(), f16(2, 5, 8), tolerance=2e-3),  # f16 has 11 bits
    layer("LayerNorm over channels, hand-written", lambda: ChannelsFirstLayerNorm(6), f32(2, 6, 5, 4)),
    layer(
        "RMSNorm",
        lambda: nn.RMSNorm(8),
        f32(2, 5, 8),
        steps=["RmsNorm"],
        unexportable=translates_no("torchscript", "aten::rms_norm"),
    ),
    layer(
        "RMSNorm, opset 23",
        lambda: nn.RMSNorm(8, eps=1e-5),
        f32(2, 5, 8),
        opset=23,
        steps=["RmsNorm"],
        unexportable=translates_no("torchscript", "aten::rms_norm"),
    ),
    layer("RMSNorm, hand-written", lambda: HandWrittenRMSNorm(8), f32(2, 5, 8), steps=["RmsNorm"]),
    layer(
        "LocalResponseNorm",
        lambda: nn.LocalResponseNorm(3, alpha=0.1),
        f32(2, 6, 5, 4),
        refused=BY_DESIGN,
        ours="translation",
        note="both exporters write a 3-D average pooling",
    ),
    layer(
        "LocalResponseNorm, even size",
        lambda: nn.LocalResponseNorm(2, alpha=0.1, k=2.0),
        f32(2, 6, 5, 4),
        refused=BY_DESIGN,
        ours="translation",
        note="both exporters write a 3-D average pooling",
    ),
    layer(
        "CrossMapLRN2d",
        lambda: nn.CrossMapLRN2d(3, alpha=0.1),
        f32(2, 6, 5, 4),
        unexportable={
            "dynamo": "the layer is an autograd function",
            "torchscript": "the layer is an autograd function",
        },
        note="it differs from ONNX's LRN: its windows keep the first channel",
    ),
    function("normalize", lambda x: F.normalize(x, dim=1), f32(2, 6, 5)),
    function("normalize, p=1", lambda x: F.normalize(x, p=1, dim=-1), f32(2, 6, 5)),
    function("instance_norm of the input's own statistics", lambda x: F.instance_norm(x, eps=0.01), f32(2, 6, 5, 4)),
]
