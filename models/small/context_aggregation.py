"""The image enhancer CAN24 (Chen et al. 2017, https://arxiv.org/abs/1709.00643), by hand.

3×3 convolutions on 24 channels of the whole image, dilated by 1, 2 … 64. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("enhanced",)
WIDTH, DILATIONS, SLOPE, SIZE = 24, (1, 2, 4, 8, 16, 32, 64, 1), 0.2, 256


class Layer(nn.Module):
    """A dilated convolution, adaptive normalization `λ · x + μ · norm(x)`, and a leaky ReLU."""

    def __init__(self, inputs: int, dilation: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(inputs, WIDTH, 3, padding=dilation, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm2d(WIDTH)
        self.plain, self.scaled = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.convolution(x)
        return F.leaky_relu(self.plain * x + self.scaled * self.norm(x), SLOPE)


class Enhancer(nn.Module):
    """`image [1, 3, 256, 256]` → `enhanced [1, 3, 256, 256]`."""

    def __init__(self) -> None:
        super().__init__()
        inputs = (3, *(WIDTH for _ in DILATIONS[1:]))
        self.layers = nn.Sequential(*(Layer(*each) for each in zip(inputs, DILATIONS, strict=True)))
        self.last = nn.Conv2d(WIDTH, 3, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.last(self.layers(image))


def build() -> Enhancer:
    return seeded(Enhancer, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"image": noise(1, 3, SIZE, SIZE)}
