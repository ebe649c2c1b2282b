"""The second stage of the denoiser DTLN (Westhausen and Meyer 2020, https://arxiv.org/abs/2005.07551), by hand.

A learned transform of one frame's samples, a mask by two LSTMs, and the transform back. See
`models/small/dtln_spectrum.py`, the first stage. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn

from models.small.dtln_spectrum import Mask, state
from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("cleaned", "next_hidden", "next_cell")
SAMPLES, FEATURES = 512, 256


class Samples(nn.Module):
    """`samples [1, 512, 1]` and the state → the `cleaned` samples and the next state."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Conv1d(SAMPLES, FEATURES, 1, bias=False)
        self.norm = nn.LayerNorm(FEATURES)
        self.mask = Mask(FEATURES)
        self.decoder = nn.Conv1d(FEATURES, SAMPLES, 1, bias=False)

    def forward(self, samples: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, ...]:
        encoded = self.encoder(samples)
        mask, *state = self.mask(self.norm(encoded.transpose(1, 2)), hidden, cell)
        return self.decoder(encoded * mask.transpose(1, 2)), *state


def build() -> Samples:
    return seeded(Samples, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"samples": noise(1, SAMPLES, 1), **state()}
