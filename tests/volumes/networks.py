"""A 3-D U-Net, and the networks of torchvision for videos, with seeded weights and small inputs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn


class Block(nn.Sequential):
    """Two convolutions, each with a normalization and an activation."""

    def __init__(self, taken: int, given: int) -> None:
        super().__init__(
            nn.Conv3d(taken, given, 3, padding=1, bias=False),
            nn.BatchNorm3d(given),
            nn.ReLU(),
            nn.Conv3d(given, given, 3, padding=1),
            nn.InstanceNorm3d(given, affine=True),
            nn.LeakyReLU(0.1),
        )


class UNet3D(nn.Module):
    """Two levels: one upsampled by a transposed convolution, and one by interpolation."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.first, self.second = Block(1, channels), Block(channels, 2 * channels)
        self.lowest = Block(2 * channels, 4 * channels)
        self.pool, self.mean = nn.MaxPool3d(2), nn.AvgPool3d(3, stride=2, padding=1)
        self.up = nn.ConvTranspose3d(4 * channels, 2 * channels, 2, stride=2)
        self.third, self.fourth = Block(4 * channels, 2 * channels), Block(3 * channels, channels)
        self.head = nn.Conv3d(channels, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The scores of two classes for each voxel of `x` `[N, 1, D, H, W]`."""
        first = self.first(x)
        second = self.second(self.pool(first))
        y = self.third(torch.cat([self.up(self.lowest(self.mean(second))), second], 1))
        y = nn.functional.interpolate(y, scale_factor=2, mode="trilinear", align_corners=False)
        return self.head(self.fourth(torch.cat([y, first], 1)))


def _video(name: str) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from torchvision.models import video

        return getattr(video, name)()

    return make


NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "unet_3d": (UNet3D, (1, 1, 8, 16, 16)),
    "r3d_18": (_video("r3d_18"), (1, 3, 4, 32, 32)),
    "swin3d_t": (_video("swin3d_t"), (1, 3, 4, 32, 32)),
}
"""Name → the network and the shape of its input."""


def export(name: str, path: Path, **given: object) -> torch.Tensor:
    """Exports a network with PyTorch, and returns an input."""
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    module, x = make(), torch.randn(shape)
    if name != "swin3d_t":
        with torch.no_grad():
            module.train()(torch.cat([x, 2 * x]))  # moves the statistics of the normalizations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), (x,), path, dynamo=True, verbose=False, **given)
    return x
