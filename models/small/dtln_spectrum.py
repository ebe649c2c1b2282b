"""The first stage of the denoiser DTLN (Westhausen and Meyer 2020, https://arxiv.org/abs/2005.07551), by hand.

Two LSTMs compute a mask for the magnitudes of one frame's spectrum. `models/small/dtln_samples.py` is the second
stage. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("masked", "next_hidden", "next_cell")
BINS, WIDTH, LAYERS = 257, 128, 2


class Mask(nn.Module):
    """`x [1, 1, features]` and the state `[2, 1, 128]`, twice → a mask of `x`, and the next state."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(features, WIDTH, LAYERS, batch_first=True)
        self.last = nn.Linear(WIDTH, features)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, ...]:
        found, state = self.lstm(x, (hidden, cell))
        return torch.sigmoid(self.last(found)), *state


class Spectrum(nn.Module):
    """`magnitudes [1, 1, 257]` and the state → the `masked` magnitudes and the next state."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = Mask(BINS)

    def forward(self, magnitudes: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mask, *state = self.mask(magnitudes, hidden, cell)
        return magnitudes * mask, *state


def build() -> Spectrum:
    return seeded(Spectrum, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"magnitudes": noise(1, 1, BINS).abs(), **state()}


def state() -> dict[str, torch.Tensor]:
    """The state of a stage's LSTMs."""
    return {"hidden": noise(LAYERS, 1, WIDTH), "cell": noise(LAYERS, 1, WIDTH)}
