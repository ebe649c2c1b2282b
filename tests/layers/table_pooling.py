"""Pooling and padding."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.layer import f32, function, layer

X1, X2 = f32(2, 3, 11), f32(2, 3, 9, 10)


class Unpooled(nn.Module):
    """Max pooling, and the unpooling of its result."""

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.unpool(*self.pool(x))


LAYERS = [
    layer("MaxPool1d", lambda: nn.MaxPool1d(3, stride=2, padding=1), X1),
    layer("MaxPool2d", lambda: nn.MaxPool2d(2), X2),
    layer("MaxPool2d, 3×3, stride 2", lambda: nn.MaxPool2d(3, stride=2, padding=1), X2),
    layer("MaxPool2d, ceil_mode", lambda: nn.MaxPool2d((3, 2), stride=2, ceil_mode=True), X2),
    layer("MaxPool2d, ceil_mode and padding", lambda: nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True), X2),
    layer("MaxPool2d, dilation", lambda: nn.MaxPool2d(3, stride=1, dilation=2), X2),
    layer("MaxPool1d, indices", lambda: nn.MaxPool1d(3, return_indices=True), X1),
    layer("MaxPool2d, indices", lambda: nn.MaxPool2d(3, stride=2, return_indices=True), X2),
    layer("MaxPool2d, indices and padding", lambda: nn.MaxPool2d(3, stride=2, padding=1, return_indices=True), X2),
    layer("AvgPool1d", lambda: nn.AvgPool1d(3, stride=2), X1),
    layer("AvgPool1d, ceil_mode", lambda: nn.AvgPool1d(4, stride=3, padding=1, ceil_mode=True), X1),
    layer("AvgPool2d", lambda: nn.AvgPool2d(2), X2),
    layer("AvgPool2d, padding", lambda: nn.AvgPool2d(3, stride=2, padding=1), X2),
    layer("AvgPool2d, count_include_pad=False", lambda: nn.AvgPool2d(3, 2, padding=1, count_include_pad=False), X2),
    layer("AvgPool2d, ceil_mode", lambda: nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True), X2),
    layer(
        "AvgPool2d, divisor_override",
        lambda: nn.AvgPool2d(3, divisor_override=5),
        X2,
        misexported={"dynamo": "it ignores the divisor", "torchscript": "it ignores the divisor"},
        ours="translation",
    ),
    layer("LPPool1d", lambda: nn.LPPool1d(2, 3, stride=2), X1.abs()),
    layer("LPPool2d", lambda: nn.LPPool2d(2, 3, stride=2), X2),
    layer("AdaptiveAvgPool1d(1)", lambda: nn.AdaptiveAvgPool1d(1), X1),
    layer(
        "AdaptiveAvgPool1d, any output",
        lambda: nn.AdaptiveAvgPool1d(4),
        X1,
        unexportable={"torchscript": "it supports only output sizes that divide the input size"},
    ),
    layer("AdaptiveAvgPool2d(1)", lambda: nn.AdaptiveAvgPool2d(1), X2),
    layer("AdaptiveAvgPool2d, output divides input", lambda: nn.AdaptiveAvgPool2d((3, 5)), X2),
    layer("AdaptiveAvgPool2d, one dim kept", lambda: nn.AdaptiveAvgPool2d((None, 5)), X2),
    layer(
        "AdaptiveAvgPool2d, any output",
        lambda: nn.AdaptiveAvgPool2d((4, 3)),
        X2,
        unexportable={"torchscript": "it supports only output sizes that divide the input size"},
    ),
    layer("AdaptiveMaxPool1d(1)", lambda: nn.AdaptiveMaxPool1d(1), X1),
    layer("AdaptiveMaxPool2d(1)", lambda: nn.AdaptiveMaxPool2d(1), X2),
    layer("AdaptiveMaxPool2d, output divides input", lambda: nn.AdaptiveMaxPool2d((3, 5)), X2),
    layer(
        "FractionalMaxPool2d",
        lambda: nn.FractionalMaxPool2d(2, output_size=4),
        X2,
        ours="translation",
        unexportable={
            "dynamo": "it does not translate aten.fractional_max_pool2d",
            "torchscript": "it does not translate aten::fractional_max_pool2d",
        },
    ),
    layer(
        "MaxUnpool2d",
        Unpooled,
        f32(1, 3, 8, 8),
        unexportable={"torchscript": "during the export, PyTorch's check of the output size fails"},
    ),
    layer("ZeroPad1d", lambda: nn.ZeroPad1d((2, 1)), X1),
    layer("ZeroPad2d", lambda: nn.ZeroPad2d((1, 2, 3, 0)), X2),
    layer("ConstantPad1d", lambda: nn.ConstantPad1d(2, -3.5), X1),
    layer("ConstantPad2d, negative", lambda: nn.ConstantPad2d((-1, 2, -2, 1), 0.5), X2),
    layer("ReflectionPad1d", lambda: nn.ReflectionPad1d((3, 2)), X1),
    layer("ReflectionPad2d", lambda: nn.ReflectionPad2d((3, 2, 1, 4)), X2),
    layer("ReplicationPad1d", lambda: nn.ReplicationPad1d((3, 2)), X1),
    layer("ReplicationPad2d", lambda: nn.ReplicationPad2d((3, 2, 1, 4)), X2),
    layer("CircularPad1d", lambda: nn.CircularPad1d((3, 2)), X1),
    layer("CircularPad2d", lambda: nn.CircularPad2d((3, 2, 1, 4)), X2),
    function("pad of the first dim", lambda x: F.pad(x, (0, 0, 0, 0, 1, 2), value=1.5), X1),
    function(
        "pad to a multiple, any length",
        lambda x: F.pad(x, (0, -x.shape[-1] % 4)),
        X1,
        dynamic=({2: "time"},),
        again=(f32(2, 3, 14),),
    ),
    layer(
        "MaxPool2d, any size",
        lambda: nn.MaxPool2d(2),
        X2,
        dynamic=({2: "height", 3: "width"},),
        again=(f32(2, 3, 7, 6),),
    ),
    layer(
        "AdaptiveAvgPool2d(1), any size",
        lambda: nn.AdaptiveAvgPool2d(1),
        X2,
        dynamic=({2: "height", 3: "width"},),
        again=(f32(2, 3, 7, 6),),
    ),
]
