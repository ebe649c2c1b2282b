"""A classifier of gestures by the 21 points of a hand (Zhang et al. 2020, https://arxiv.org/abs/2006.10214), by hand.

Three small fully connected layers. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("gestures",)
POINTS, WIDTHS, GESTURES = 21, (20, 10), 8


class Classifier(nn.Sequential):
    """`points [1, 42]`, relative to the wrist → probabilities of `gestures [1, 8]`."""

    def __init__(self) -> None:
        first, second = WIDTHS
        hidden = [nn.Linear(2 * POINTS, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU()]
        super().__init__(*hidden, nn.Linear(second, GESTURES), nn.Softmax(-1))

    def forward(self, points: torch.Tensor) -> torch.Tensor:
        return super().forward(points)


def build() -> Classifier:
    return seeded(Classifier, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"points": noise(1, 2 * POINTS)}
