"""Three-dimensional layers: the compiler refuses them, except for those that need no operator of three dimensions."""

from __future__ import annotations

import torch.nn.functional as F
from torch import nn

from tests.layers.layer import f32, function, layer, translates_no

X = f32(1, 3, 4, 5, 6)
BY_DESIGN = "CC0301"
REFUSED = {"dynamo": BY_DESIGN, "torchscript": BY_DESIGN}

LAYERS = [
    layer("Conv3d", lambda: nn.Conv3d(3, 4, 2), X, refused=REFUSED),
    layer("Conv3d, depthwise", lambda: nn.Conv3d(3, 3, 3, groups=3, padding=1), X, refused=REFUSED),
    layer("Conv3d, 1×1×1", lambda: nn.Conv3d(3, 4, 1), X, refused=REFUSED),
    layer("ConvTranspose3d", lambda: nn.ConvTranspose3d(3, 4, 2), X, refused=REFUSED),
    layer("MaxPool3d", lambda: nn.MaxPool3d(2), X, refused=REFUSED),
    layer("AvgPool3d", lambda: nn.AvgPool3d(2), X, refused=REFUSED),
    layer("AdaptiveMaxPool3d(1)", lambda: nn.AdaptiveMaxPool3d(1), X, refused={"torchscript": BY_DESIGN}),
    layer(
        "AdaptiveAvgPool3d, output divides input",
        lambda: nn.AdaptiveAvgPool3d((2, 5, 3)),
        X,
        refused={"torchscript": BY_DESIGN},
        ours="translation",
        unexportable=translates_no("dynamo", "aten._adaptive_avg_pool3d"),
    ),
    layer("LPPool3d", lambda: nn.LPPool3d(2, 2), X, refused=REFUSED),
    layer("BatchNorm3d", lambda: nn.BatchNorm3d(3), X, refused=REFUSED),
    layer("InstanceNorm3d", lambda: nn.InstanceNorm3d(3), X, refused=REFUSED),
    layer("Upsample of volumes", lambda: nn.Upsample(scale_factor=2), X, refused=REFUSED),
    layer("Upsample of volumes, trilinear", lambda: nn.Upsample(scale_factor=2, mode="trilinear"), X, refused=REFUSED),
    function(
        "grid_sample of volumes",
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        X,
        f32(1, 2, 3, 4, 3),
        refused=REFUSED,
    ),
    layer(
        "Conv3d, BatchNorm3d, ReLU",
        lambda: nn.Sequential(nn.Conv3d(3, 4, 2), nn.BatchNorm3d(4), nn.ReLU()),
        X,
        refused=REFUSED,
    ),
    layer("AdaptiveAvgPool3d(1)", lambda: nn.AdaptiveAvgPool3d(1), X, refused={"torchscript": BY_DESIGN}),
    layer("Dropout3d", nn.Dropout3d, X),
    layer("ConstantPad3d", lambda: nn.ConstantPad3d(1, 0.5), X),
    layer("ReplicationPad3d", lambda: nn.ReplicationPad3d(1), X),
    layer("Softmax on volumes", lambda: nn.Softmax(1), X),
    layer("LayerNorm on volumes", lambda: nn.LayerNorm((4, 5, 6)), X),
]
