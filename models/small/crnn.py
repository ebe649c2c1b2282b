"""The reader of text CRNN (Shi et al. 2015, https://arxiv.org/abs/1507.05717), by hand.

Convolutions turn a line of text into one column of features for each four pixels, which two bidirectional LSTMs read.
A quarter as wide as the published one. The weights are seeded.
"""

from __future__ import annotations

import torch
from torch import nn

from models.weights import noise, seeded

TOLERANCE = 1e-5
OUTPUTS = ("characters",)
HEIGHT, WIDTH, STATE, CHARACTERS = 32, 128, 64, 37
LAYERS = ((1, 16, (2, 2)), (16, 32, (2, 2)), (32, 64, None), (64, 64, (2, 1)), (64, 128, None), (128, 128, (2, 1)))


class Reader(nn.Module):
    """`line [1, 1, 32, 128]` → log-probabilities of `characters [1, 31, 37]`."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential()
        for inputs, outputs, pooled in LAYERS:
            convolution = nn.Conv2d(inputs, outputs, 3, padding=1)
            self.layers.extend([convolution, nn.BatchNorm2d(outputs), nn.ReLU()])
            if pooled:
                self.layers.append(nn.MaxPool2d(pooled))
        last = LAYERS[-1][1]
        self.layers.extend([nn.Conv2d(last, last, 2), nn.ReLU()])
        self.lstm = nn.LSTM(last, STATE, 2, batch_first=True, bidirectional=True)
        self.last = nn.Linear(2 * STATE, CHARACTERS)

    def forward(self, line: torch.Tensor) -> torch.Tensor:
        columns = self.layers(line).squeeze(2).transpose(1, 2)
        return torch.log_softmax(self.last(self.lstm(columns)[0]), -1)


def build() -> Reader:
    return seeded(Reader, inputs())


def inputs() -> dict[str, torch.Tensor]:
    return {"line": noise(1, 1, HEIGHT, WIDTH)}
