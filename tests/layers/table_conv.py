"""Convolutions."""

from __future__ import annotations

import torch.nn.functional as F
from torch import nn

from tests.layers.layer import f16, f32, f64, function, layer, translates_no

LAYERS = [
    layer("Conv1d", lambda: nn.Conv1d(3, 8, 3), f32(2, 3, 11)),
    layer("Conv1d, stride and padding", lambda: nn.Conv1d(3, 8, 5, stride=2, padding=3), f32(2, 3, 11)),
    layer("Conv1d, dilation", lambda: nn.Conv1d(3, 8, 3, dilation=4, padding=4), f32(2, 3, 11)),
    layer("Conv1d, groups", lambda: nn.Conv1d(6, 9, 3, groups=3), f32(2, 6, 11)),
    layer("Conv1d, depthwise", lambda: nn.Conv1d(6, 6, 5, groups=6, padding=2), f32(2, 6, 11)),
    layer(
        "Conv1d, any length",
        lambda: nn.Conv1d(3, 8, 3, padding=1),
        f32(2, 3, 11),
        dynamic=({2: "time"},),
        again=(f32(2, 3, 17),),
    ),
    layer("Conv1d, unbatched", lambda: nn.Conv1d(3, 8, 3), f32(3, 11)),
    layer("Conv2d", lambda: nn.Conv2d(3, 16, 3), f32(1, 3, 9, 10), steps=["Conv"]),
    layer("Conv2d, 1×1, no bias", lambda: nn.Conv2d(6, 16, 1, bias=False), f32(2, 6, 5, 7)),
    layer("Conv2d, 5×3, stride 2×1", lambda: nn.Conv2d(3, 8, (5, 3), stride=(2, 1), padding=(2, 1)), f32(1, 3, 9, 10)),
    layer("Conv2d, 7×7, stride 2", lambda: nn.Conv2d(3, 16, 7, stride=2, padding=3), f32(1, 3, 17, 18)),
    layer("Conv2d, dilation", lambda: nn.Conv2d(3, 8, 3, dilation=(2, 3)), f32(1, 3, 9, 10)),
    layer("Conv2d, groups", lambda: nn.Conv2d(8, 12, 3, groups=4, padding=1), f32(2, 8, 7, 7)),
    layer("Conv2d, depthwise", lambda: nn.Conv2d(16, 16, 3, groups=16, padding=1), f32(1, 16, 9, 9)),
    layer("Conv2d, depthwise, two filters a channel", lambda: nn.Conv2d(8, 16, 3, groups=8), f32(1, 8, 9, 9)),
    layer("Conv2d, padding='same'", lambda: nn.Conv2d(3, 8, (4, 3), padding="same"), f32(1, 3, 9, 10)),
    layer("Conv2d, padding='valid'", lambda: nn.Conv2d(3, 8, 3, padding="valid"), f32(1, 3, 9, 10)),
    layer(
        "Conv2d, padding_mode='reflect'",
        lambda: nn.Conv2d(3, 8, 3, padding=2, padding_mode="reflect"),
        f32(1, 3, 9, 10),
    ),
    layer(
        "Conv2d, padding_mode='replicate'",
        lambda: nn.Conv2d(3, 8, 3, padding=2, padding_mode="replicate"),
        f32(1, 3, 9, 10),
    ),
    layer(
        "Conv2d, padding_mode='circular'",
        lambda: nn.Conv2d(3, 8, 3, padding=2, padding_mode="circular"),
        f32(1, 3, 9, 10),
    ),
    layer(
        "Conv1d, padding_mode='circular'", lambda: nn.Conv1d(3, 8, 3, padding=2, padding_mode="circular"), f32(2, 3, 11)
    ),
    layer(
        "Conv2d, any size",
        lambda: nn.Conv2d(3, 8, 3, stride=2, padding=1),
        f32(1, 3, 9, 10),
        dynamic=({0: "batch", 2: "height", 3: "width"},),
        again=(f32(2, 3, 12, 7),),
    ),
    layer(
        "Conv2d, half precision", lambda: nn.Conv2d(3, 8, 3).half(), f16(1, 3, 9, 10), tolerance=2e-3
    ),  # f16 has 11 bits
    layer("Conv2d, double precision", lambda: nn.Conv2d(3, 8, 3).double(), f64(1, 3, 9, 10), tolerance=1e-12),
    layer(
        "Conv2d, BatchNorm2d, ReLU",
        lambda: nn.Sequential(nn.Conv2d(3, 16, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        f32(1, 3, 9, 10),
        steps=["Conv"],
    ),
    layer("Conv2d, SiLU", lambda: nn.Sequential(nn.Conv2d(3, 16, 3), nn.SiLU()), f32(1, 3, 9, 10), steps=["Conv"]),
    layer("ConvTranspose1d", lambda: nn.ConvTranspose1d(6, 4, 4, stride=2, padding=1), f32(2, 6, 7)),
    layer(
        "ConvTranspose1d, output_padding",
        lambda: nn.ConvTranspose1d(6, 4, 5, stride=3, padding=1, output_padding=2),
        f32(2, 6, 7),
    ),
    layer("ConvTranspose1d, groups", lambda: nn.ConvTranspose1d(6, 4, 3, groups=2), f32(2, 6, 7)),
    layer("ConvTranspose2d", lambda: nn.ConvTranspose2d(6, 4, 3), f32(1, 6, 5, 7)),
    layer("ConvTranspose2d, 2×2, stride 2", lambda: nn.ConvTranspose2d(6, 4, 2, stride=2), f32(1, 6, 5, 7)),
    layer(
        "ConvTranspose2d, output_padding",
        lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1, output_padding=1),
        f32(1, 6, 5, 7),
    ),
    layer("ConvTranspose2d, dilation", lambda: nn.ConvTranspose2d(6, 4, 3, stride=2, dilation=(2, 3)), f32(1, 6, 5, 7)),
    layer("ConvTranspose2d, groups", lambda: nn.ConvTranspose2d(6, 8, 3, stride=2, groups=2), f32(1, 6, 5, 7)),
    layer("ConvTranspose2d, depthwise", lambda: nn.ConvTranspose2d(6, 6, 4, stride=2, groups=6), f32(1, 6, 5, 7)),
    function(
        "conv2d with the weight as an input", lambda x, w: F.conv2d(x, w, padding=1), f32(1, 3, 6, 7), f32(4, 3, 3, 3)
    ),
    function("conv_transpose1d, weight as an input", F.conv_transpose1d, f32(2, 6, 7), f32(6, 4, 3)),
    layer("Unfold", lambda: nn.Unfold((2, 3), padding=1, stride=2), f32(1, 3, 7, 8)),
    layer("Fold", lambda: nn.Fold((5, 6), (2, 3)), f32(1, 12, 16)),
    layer("Fold, stride and padding", lambda: nn.Fold((6, 6), 3, padding=1, stride=2), f32(1, 18, 9)),
    layer(
        "ChannelShuffle",
        lambda: nn.ChannelShuffle(3),
        f32(1, 6, 4, 5),
        unexportable=translates_no("torchscript", "aten::channel_shuffle"),
    ),
]
