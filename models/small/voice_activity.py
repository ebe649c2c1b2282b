"""One chunk of a detector of speech, in the style of Silero VAD (https://github.com/snakers4/silero-vad), by hand.

A convolution computes the short-time Fourier transform, four convolutions read its magnitudes, and an LSTM carries its
state from chunk to chunk. The weights are seeded.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional as F

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("speech", "next_hidden", "next_cell")
SAMPLES, WINDOW, HOP, WIDTH = 576, 256, 128, 128
BINS = WINDOW // 2 + 1
LAYERS = ((BINS, 128, 1), (128, 64, 2), (64, 64, 2), (64, WIDTH, 1))


def fourier_basis() -> torch.Tensor:
    """The windowed cosines and sines of the transform, `[2 · BINS, 1, WINDOW]`."""
    angles = torch.arange(BINS)[:, None] * torch.arange(WINDOW) * (2 * math.pi / WINDOW)
    return (torch.cat([angles.cos(), -angles.sin()]) * torch.hann_window(WINDOW))[:, None]


class Detector(nn.Module):
    """`samples [1, 576]` and the state `[1, 1, 128]`, twice → the probability of `speech [1, 1]` and the next state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("basis", fourier_basis())
        self.encoder = nn.Sequential()
        for inputs, outputs, stride in LAYERS:
            self.encoder.extend([nn.Conv1d(inputs, outputs, 3, stride, 1), nn.ReLU()])
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.last = nn.Conv1d(WIDTH, 1, 1)

    def forward(self, samples: torch.Tensor, hidden: torch.Tensor, cell: torch.Tensor) -> tuple[torch.Tensor, ...]:
        padded = F.pad(samples[:, None], (0, WINDOW // 4), mode="reflect")
        real, imaginary = F.conv1d(padded, self.basis, stride=HOP).chunk(2, 1)
        x = self.encoder(torch.sqrt(real**2 + imaginary**2))
        x, (hidden, cell) = self.lstm(x.transpose(1, 2), (hidden, cell))
        return torch.sigmoid(self.last(F.relu(x).transpose(1, 2))).mean(2), hidden, cell


def build() -> Detector:
    return seeded(Detector, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"samples": noise(1, SAMPLES), "hidden": noise(1, 1, WIDTH), "cell": noise(1, 1, WIDTH)}
