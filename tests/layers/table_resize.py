"""Upsampling, interpolation and sampling of images."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from tests.layers.layer import Layer, f32, function, layer, translates_no

X1, X2 = f32(2, 3, 7), f32(1, 3, 5, 6)


def resized(name: str, x: torch.Tensor, *, rest: dict[str, Any] | None = None, **arguments: Any) -> Layer:
    return function(f"interpolate, {name}", lambda x: F.interpolate(x, **arguments), x, **(rest or {}))


LAYERS = [
    layer("Upsample", lambda: nn.Upsample(scale_factor=2), X2, steps=["Interpolate"]),
    layer("Upsample, 1-D", lambda: nn.Upsample(scale_factor=2), X1, steps=["Interpolate"]),
    layer("Upsample, opset 9", lambda: nn.Upsample(scale_factor=2), X2, opset=9),
    layer("Upsample, bilinear, align_corners", lambda: nn.Upsample((9, 8), mode="bilinear", align_corners=True), X2),
    layer("UpsamplingNearest2d", lambda: nn.UpsamplingNearest2d(scale_factor=3), X2),
    layer("UpsamplingBilinear2d", lambda: nn.UpsamplingBilinear2d(scale_factor=2), X2),
    resized("nearest, to a size", X2, size=(9, 13)),
    resized("nearest, by 1.7", X2, scale_factor=1.7),
    resized("nearest, by 1.7 × 0.6", X2, scale_factor=(1.7, 0.6)),
    resized("nearest, by 1.7, recompute_scale_factor", X2, scale_factor=1.7, recompute_scale_factor=True),
    resized("nearest, 1-D, by 2.5", X1, scale_factor=2.5),
    resized(
        "nearest-exact",
        X2,
        size=(9, 4),
        mode="nearest-exact",
        rest={"unexportable": translates_no("torchscript", "aten::_upsample_nearest_exact2d")},
    ),
    resized(
        "nearest-exact, 1-D",
        X1,
        scale_factor=2.0,
        mode="nearest-exact",
        rest={"unexportable": translates_no("torchscript", "aten::_upsample_nearest_exact1d")},
    ),
    resized("linear", X1, size=11, mode="linear"),
    resized("linear, by 2", X1, scale_factor=2, mode="linear"),
    resized("linear, align_corners", X1, size=11, mode="linear", align_corners=True),
    resized("bilinear, by 2", X2, scale_factor=2, mode="bilinear"),
    resized("bilinear, by 1.7", X2, scale_factor=1.7, mode="bilinear"),
    resized(
        "bilinear, by 1.7, recompute_scale_factor",
        X2,
        scale_factor=1.7,
        mode="bilinear",
        recompute_scale_factor=True,
    ),
    resized("bilinear, to a smaller size", X2, size=(3, 4), mode="bilinear"),
    resized("bilinear, align_corners", X2, size=(9, 13), mode="bilinear", align_corners=True),
    resized(
        "bilinear, antialias",
        f32(1, 3, 9, 12),
        size=(4, 5),
        mode="bilinear",
        antialias=True,
        rest={"unexportable": translates_no("torchscript", "aten::_upsample_bilinear2d_aa")},
    ),
    resized("bicubic", X2, size=(9, 13), mode="bicubic"),
    resized("bicubic, by 2, align_corners", X2, scale_factor=2, mode="bicubic", align_corners=True),
    resized("bicubic, to a smaller size", f32(1, 3, 9, 12), size=(4, 5), mode="bicubic"),
    resized(
        "bicubic, antialias",
        f32(1, 3, 9, 12),
        size=(4, 5),
        mode="bicubic",
        antialias=True,
        rest={"unexportable": translates_no("torchscript", "aten::_upsample_bicubic2d_aa")},
    ),
    resized(
        "area",
        X2,
        size=(2, 3),
        mode="area",
        rest={"unexportable": {"torchscript": "it supports only output sizes that divide the input size"}},
    ),
    resized(
        "nearest, by 2, any size",
        X2,
        scale_factor=2,
        rest={"dynamic": ({2: "height", 3: "width"},), "again": (f32(1, 3, 4, 9),)},
    ),
    resized(
        "bilinear, by 2, any size",
        X2,
        scale_factor=2,
        mode="bilinear",
        rest={"dynamic": ({2: "height", 3: "width"},), "again": (f32(1, 3, 4, 9),)},
    ),
    function(
        "interpolate to the size of another tensor",
        lambda x, y: F.interpolate(x, size=y.shape[2:], mode="bilinear"),
        X2,
        f32(1, 3, 10, 7),
        dynamic=({2: "h", 3: "w"}, {2: "height", 3: "width"}),
        again=(f32(1, 3, 4, 5), f32(1, 3, 9, 9)),
    ),
    layer("PixelShuffle", lambda: nn.PixelShuffle(2), f32(1, 12, 3, 4)),
    layer("PixelUnshuffle", lambda: nn.PixelUnshuffle(2), f32(1, 3, 6, 8)),
    layer("Conv2d, PixelShuffle", lambda: nn.Sequential(nn.Conv2d(3, 12, 3), nn.PixelShuffle(2)), X2),
    function("grid_sample", lambda x, g: F.grid_sample(x, g, align_corners=False), X2, f32(1, 4, 7, 2) * 0.6),
    function(
        "grid_sample, nearest, border",
        lambda x, g: F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True),
        X2,
        f32(1, 4, 7, 2) * 0.6,
    ),
    function(
        "grid_sample, bicubic, reflection",
        lambda x, g: F.grid_sample(x, g, mode="bicubic", padding_mode="reflection", align_corners=False),
        X2,
        f32(1, 4, 7, 2) * 0.6,
    ),
    function("affine_grid", lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), f32(2, 2, 3)),
    function("affine_grid, align_corners", lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=True), f32(2, 2, 3)),
]
