"""Whisper-tiny's encoder on 30 s of speech (Radford et al. 2022, https://arxiv.org/abs/2212.04356).

The network is that of `transformers`, the weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import WhisperConfig, WhisperModel

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("hidden",)
CONFIG = WhisperConfig()  # its defaults are the sizes of Whisper-tiny


class Encoder(nn.Module):
    """`mel [1, 80, 3000]` → `hidden [1, 1500, 384]`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = WhisperModel(CONFIG).encoder

    def forward(self, mel: torch.Tensor) -> torch.Tensor:
        return self.encoder(mel).last_hidden_state


def build() -> Encoder:
    return seeded(Encoder, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"mel": noise(1, CONFIG.num_mel_bins, 2 * CONFIG.max_source_positions)}
